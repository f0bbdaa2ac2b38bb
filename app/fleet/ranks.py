"""Data-parallel ranks: how many engines a server has, and whether it sends a request to the one that it names."""

from collections.abc import Sequence

SIGHTINGS = 2
"""Scrapes in a row that must show another number of engines while pages are read; one may have been cut short."""
STRAYS_TO_GIVE_UP = 2
"""Pages read by another engine than their own after which requests are pinned no more."""
PROOFS_TO_BELIEVE = 8
"""Pages read by their own engine, while another stood still, after which nothing more is checked. A server that sends
requests where it likes passes that often by chance once in 256 times with two engines, more seldom with more."""


class EngineCount:
    """The number of engines, as successive scrapes show it."""

    def __init__(self) -> None:
        self.count = 1
        self._other = 1
        self._sightings = 0

    def seen(self, engines: int, *, in_use: bool) -> None:
        """A scrape shows `engines`, 0: nothing. A server that is not `in_use` is believed at once."""
        if engines in (0, self.count):
            self._sightings = 0
            return
        self._sightings = self._sightings + 1 if engines == self._other else 1
        self._other = engines
        if self._sightings >= SIGHTINGS or not in_use:
            self.count = engines
            self._sightings = 0


class PinCheck:
    """Whether pages are read by the engine that their request names.

    Nobody says which engine has read a page, but each shows whether it has worked: one that stood still from before a
    page's beginning to after its end did not read it. Requests of other clients can hide a stray, and never make one.
    """

    def __init__(self) -> None:
        self._proofs = 0
        self._strays = 0

    @property
    def ignored(self) -> bool:
        """The server does not heed the pin."""
        return self._strays >= STRAYS_TO_GIVE_UP

    @property
    def settled(self) -> bool:
        return self.ignored or self._proofs >= PROOFS_TO_BELIEVE

    def page_read(self, rank: int, worked: Sequence[bool]) -> None:
        """A page of `rank` was read; `worked` says of each engine whether it has moved since before the page began."""
        if not worked[rank]:
            self._strays += 1
        elif not all(worked):
            self._proofs += 1
