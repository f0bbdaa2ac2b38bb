"""Prepared pages and who has them read: the fleet by itself, without drawing and without a journal."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from app.documents.records import Claim
from app.errors import AttemptError
from app.fleet import Fleet
from app.profiles import Profiles
from app.settings import Settings
from app.worker.dispatcher import Dispatcher
from app.worker.page_reader import MAX_CHARGED_ATTEMPTS, backoff_seconds
from tests.benchmarks.simulation.traffic import claim_of
from tests.waiting import until

IMAGE_BASE64 = b"A" * 40_000
"""As long as that of a small grey page."""
PROFILE = Profiles(Settings())["generic"]


@dataclass(frozen=True, slots=True)
class Read:
    seconds: float
    """From the page's arrival to its end."""
    good: bool


class Reader(Protocol):
    async def read(self, claim: Claim) -> bool:
        """Have the page read; whether it was."""


class FleetReader:
    """As the worker does it: the fair order, the least-loaded lane, and another lane after a failure."""

    def __init__(self, fleet: Fleet) -> None:
        self._dispatcher = Dispatcher(fleet)
        self._unended: Counter[str] = Counter()
        fleet.on_change(self._dispatcher.pump)

    async def read(self, claim: Claim) -> bool:
        self._unended[claim.document_id] += 1
        try:
            return await self._read(claim)
        finally:
            self._unended[claim.document_id] -= 1
            if not self._unended[claim.document_id]:
                self._dispatcher.forget(claim)

    async def _read(self, claim: Claim) -> bool:
        failed_lanes: set[str] = set()
        faults = charged = 0
        while charged < MAX_CHARGED_ATTEMPTS:
            with await self._dispatcher.attempt(claim, PROFILE, failed_lanes) as attempt:
                try:
                    await attempt.complete(request(claim))
                    return True
                except AttemptError as error:
                    failed_lanes.add(attempt.lane.id)
                    faults += 1
                    charged += error.charged
            await asyncio.sleep(backoff_seconds(faults))
        return False


def request(claim: Claim) -> tuple[bytes, ...]:
    """The body of a page's request, in parts."""
    before, after = PROFILE.request("standin")
    return before, f"{claim.page:08}".encode(), IMAGE_BASE64, after


@asynccontextmanager
async def fleet_reader(urls: Sequence[str], **settings: Any) -> AsyncIterator[FleetReader]:
    """A fleet whose lanes are all up when it begins."""
    fleet = Fleet(Settings(endpoints=tuple(urls), **settings))
    reader = FleetReader(fleet)
    with structlog.testing.capture_logs():  # they would stand between the figures
        await fleet.start()
        try:
            await until(lambda: all(lane.state.takes_pages for lane in fleet.lanes()))
            yield reader
        finally:
            await fleet.stop()


async def read_book(reader: Reader, pages: int, document: str = "book") -> list[Read]:
    """All pages of a document, which are there at once."""

    async def read(number: int) -> Read:
        started = time.perf_counter()
        good = await reader.read(claim_of(document, number))
        return Read(time.perf_counter() - started, good)

    return await asyncio.gather(*(read(number) for number in range(1, pages + 1)))
