"""How fast pages are read while there are any."""

import math
import time
from collections.abc import Callable

HALF_LIFE_SECONDS = 30.0
"""Of busy time: what was measured so long ago counts half."""
UNKNOWN_DRAIN_SECONDS = 5
MAX_DRAIN_SECONDS = 3600


class DrainRate:
    """Pages that end a second, averaged over the time in which there was work; recent time weighs more.

    Idle time neither counts nor ages what is known.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` counts seconds."""
        self._clock = clock
        self._busy = False
        self._at = clock()
        self._pages = 0.0
        self._seconds = 0.0

    def note_work(self, busy: bool) -> None:
        """Whether there is any work from now on."""
        self._advance()
        self._busy = busy

    def note_page(self) -> None:
        """A page has ended."""
        self._advance()
        self._pages += 1

    @property
    def pages_per_second(self) -> float:
        """0 as long as no page has ended."""
        self._advance()
        return self._pages / self._seconds if self._seconds > 0 else 0.0

    def _advance(self) -> None:
        now = self._clock()
        if self._busy:
            kept = 0.5 ** ((now - self._at) / HALF_LIFE_SECONDS)
            self._pages *= kept
            self._seconds = self._seconds * kept + (1 - kept) * HALF_LIFE_SECONDS / math.log(2)
        self._at = now


def seconds_to_drain(pages: int, pages_per_second: float) -> int:
    """Whole seconds until so many pages are read, from 1 to an hour; a guess where the rate is not known."""
    if pages_per_second <= 0:
        return UNKNOWN_DRAIN_SECONDS
    return max(1, math.ceil(min(MAX_DRAIN_SECONDS, pages / pages_per_second)))
