"""What operators want of the fleet; every gateway that uses the same replicas follows it."""

from collections.abc import Callable, Set
from typing import Protocol


class Desired(Protocol):
    """Kept where all gateways can see it."""

    def drained(self) -> Set[str]:
        """Ids of lanes that are to take no pages, whether this gateway knows them or not."""

    async def drain(self, lane: str, /) -> None:
        """Want no pages on the lane of this id."""

    async def resume(self, lane: str, /) -> None:
        """Want pages there again."""

    def on_change(self, callback: Callable[[], None], /) -> None:
        """Call `callback`, in the loop, whenever what is wanted has changed."""


class DesiredHere:
    """Of a gateway that is alone: in memory, and forgotten when it ends."""

    def __init__(self) -> None:
        self._drained: set[str] = set()
        self._callbacks: list[Callable[[], None]] = []

    def drained(self) -> Set[str]:
        return self._drained

    async def drain(self, lane: str) -> None:
        self._drained.add(lane)
        self._changed()

    async def resume(self, lane: str) -> None:
        self._drained.discard(lane)
        self._changed()

    def on_change(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def _changed(self) -> None:
        for callback in self._callbacks:
            callback()
