"""The order in which a stand-in, or one of its ranks, gives its replies."""

import random
from collections import deque
from collections.abc import Sequence

from tests.standins.replies import Reply


class Script:
    """First what is planned; then, by chance, what the mix holds; then always the same."""

    def __init__(self, chance: random.Random) -> None:
        self.always: Reply | None = None
        self.mix: Sequence[tuple[float, Reply]] = ()
        """Replies with the share of calls that each gets."""
        self._plan: deque[Reply] = deque()
        self._chance = chance

    def plan(self, *replies: Reply) -> None:
        self._plan.extend(replies)

    def take(self) -> Reply | None:
        """Reply to the call that has just arrived; None: the script does not say."""
        return self._plan.popleft() if self._plan else self._draw() or self.always

    def _draw(self) -> Reply | None:
        if not self.mix:
            return None
        point = self._chance.random()
        for share, reply in self.mix:
            point -= share
            if point < 0:
                return reply
        return None
