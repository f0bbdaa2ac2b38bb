"""The gateways that share the journal, as this one knows them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Peer:
    """What a gateway has told of itself."""

    wants: Mapping[str, int] = field(default_factory=dict)
    """By profile, pages that it could work on."""
    pages_per_second: float = 0.0


class Peers:
    """This gateway and the others that live. What it says of itself reaches them with its next beat, in a second."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._others: dict[str, Peer] = {}
        self._wants: dict[str, int] = {}
        self._pages_per_second = 0.0
        self._callbacks: list[Callable[[], None]] = []

    def want(self, profile: str, pages: int) -> None:
        """How many pages of `profile` this gateway could work on, those that it has claimed included."""
        self._wants[profile] = pages

    def wants(self, profile: str) -> Mapping[str, int]:
        """By gateway, this one included."""
        others = {name: peer.wants.get(profile, 0) for name, peer in self._others.items()}
        return {**others, self.owner: self._wants.get(profile, 0)}

    def note_rate(self, pages_per_second: float) -> None:
        """How fast this gateway reads pages when it has any."""
        self._pages_per_second = pages_per_second

    @property
    def pages_per_second(self) -> float:
        """How fast all read together: those that have work now, else the one that was fastest when it had."""
        peers = [*self._others.values(), self.own]
        busy = [peer.pages_per_second for peer in peers if any(peer.wants.values())]
        return sum(busy) if busy else max(peer.pages_per_second for peer in peers)

    @property
    def count(self) -> int:
        """Gateways that live, this one included."""
        return len(self._others) + 1

    @property
    def own(self) -> Peer:
        return Peer(dict(self._wants), self._pages_per_second)

    def on_beat(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the event loop whenever the others have been heard of."""
        self._callbacks.append(callback)

    def heard(self, others: Mapping[str, Peer]) -> None:
        """Take in what the others have told."""
        self._others = dict(others)
        for callback in self._callbacks:
            callback()
