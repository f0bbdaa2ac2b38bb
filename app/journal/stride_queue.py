"""Who is served next, by smallest pass."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True, order=True)
class Entry:
    """A tenant or a document; of equal passes the smaller key goes first."""

    pass_: int
    key: str
    stride: int
    pages: int
    """Pages queued: how often it can be served."""


class StrideQueue:
    """Entries in the order in which stride scheduling serves them, one page a turn."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._heap = list(entries)
        heapq.heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def first(self) -> str:
        """Key of the entry whose turn it is."""
        return self._heap[0].key

    def serve(self) -> str:
        """Take one page of the first entry, which moves on by its stride or, with its last page, leaves."""
        entry = self._heap[0]
        entry.pages -= 1
        if entry.pages == 0:
            return heapq.heappop(self._heap).key
        entry.pass_ += entry.stride
        heapq.heapreplace(self._heap, entry)
        return entry.key

    def drop(self) -> None:
        """Take the first entry out: it has nothing to give."""
        heapq.heappop(self._heap)
