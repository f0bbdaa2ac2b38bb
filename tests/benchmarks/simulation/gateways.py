"""The real thing: gateways that claim, dispatch and choose lanes with the code of the service.

What would need a disk or a network is replaced: the journal by a queue in memory, replicas by those of `Network`.
Drawing a page takes no time.
"""

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

from app.documents.records import Claim
from app.errors import AttemptError
from app.fleet import Fleet
from app.journal import Journal
from app.journal.beats import BEAT_SECONDS
from app.journal.changes import Changes
from app.journal.peers import Peers
from app.profiles import Profiles
from app.settings import Settings
from app.worker.active import ActivePage
from app.worker.claimer import Claimer
from app.worker.dispatcher import Dispatcher
from app.worker.fair_queue import FairQueue
from app.worker.page_reader import Progress
from tests.benchmarks.simulation import virtual_time
from tests.benchmarks.simulation.replicas import Network, Visit
from tests.benchmarks.simulation.traffic import Page, Replica, Stay

PROFILE = "generic"
RENDER_WORKERS = 2
PROBE_SECONDS = 60.0
"""Between two probes of a replica; more often would only cost real time."""
START_SECONDS = 5.0
"""Until all lanes are up and the gateways have heard of each other; then the first page comes."""


class Queue:
    """Pages that no gateway has claimed, in the order in which the journal gives them out."""

    def __init__(self) -> None:
        self.changes: list[Changes] = []
        self.ended = asyncio.Event()
        """No page is waiting or being read."""
        self._waiting: FairQueue[Claim] = FairQueue()
        self._unended = Counter[str]()

    def put(self, claims: Sequence[Claim]) -> None:
        self.ended.clear()
        for claim in claims:
            self._unended[claim.document_id] += 1
            self._waiting.push(claim, claim)
        for changes in self.changes:
            changes.hear_queued()

    def take(self, limit: int, without: Collection[str]) -> list[Claim]:
        taken: list[Claim] = []
        while len(taken) < limit:
            allowed = (claim for claim in self._waiting.in_order() if claim.document_id not in without)
            if (claim := next(allowed, None)) is None:
                break
            taken.append(self._waiting.serve(claim))
        return taken

    def end(self, claim: Claim) -> None:
        self._unended[claim.document_id] -= 1
        if not self._unended[claim.document_id]:
            self._waiting.forget(claim)
            del self._unended[claim.document_id]
        if not self._unended:
            self.ended.set()


class _Journal:
    """As much of a journal as the claimer asks for."""

    def __init__(self, queue: Queue) -> None:
        self.changes = Changes()
        self._queue = queue
        queue.changes.append(self.changes)

    async def claim(self, limit: int, profiles: Sequence[str], without: Collection[str] = ()) -> list[Claim]:
        return self._queue.take(limit, without) if PROFILE in profiles else []

    async def rejoin(self, held: Collection[Claim]) -> set[Claim]:
        """Nobody takes claims over here."""
        return set(held)


class _Gateway:
    def __init__(self, name: str, queue: Queue, network: Network) -> None:
        settings = Settings(
            endpoints=network.urls, render_workers=RENDER_WORKERS, health_interval_seconds=PROBE_SECONDS
        )
        self.fleet = Fleet(settings)
        self.peers = Peers(name)
        self._profiles = Profiles(settings)
        self._queue = queue
        self._dispatcher = Dispatcher(self.fleet)
        self._active: dict[Claim, ActivePage] = {}
        journal = cast(Journal, _Journal(queue))
        self._claimer = Claimer(settings, journal, self.fleet, self._profiles, self._active, self._begin)
        self.fleet.on_change(self._dispatcher.pump)
        self.fleet.on_change(self._claimer.wake)

    async def start(self) -> None:
        await self.fleet.start()
        self.fleet.share_with(self.peers, lambda model: self._profiles.for_models([model]))
        self.peers.on_beat(self.fleet.reshare)
        self._claimer.start()

    async def stop(self) -> None:
        await self._claimer.stop()
        await self.fleet.stop()

    def tell(self) -> None:
        for profile, pages in self._claimer.wants().items():
            self.peers.want(profile, pages)

    def _begin(self, claim: Claim) -> None:
        progress = Progress(attempts=0)
        task = asyncio.create_task(self._read(claim, progress))
        self._active[claim] = ActivePage(claim, progress, task)
        task.add_done_callback(lambda _: self._end(claim))

    def _end(self, claim: Claim) -> None:
        del self._active[claim]
        if all(page.document_id != claim.document_id for page in self._active):
            self._dispatcher.forget(claim)
        self._queue.end(claim)
        self._claimer.wake()

    async def _read(self, claim: Claim, progress: Progress) -> None:
        body = (f"{claim.document_id}/{claim.page}".encode(),)
        while True:
            with await self._dispatcher.attempt(claim, self._profiles[PROFILE], progress.failed_lanes) as attempt:
                progress.in_flight = True
                try:
                    await attempt.complete(body)
                    return
                except AttemptError:
                    progress.failed_lanes.add(attempt.lane.id)
                finally:
                    progress.in_flight = False


async def _beat(gateway: _Gateway, gateways: Sequence[_Gateway], phase: float) -> None:
    """Once a second a gateway tells of itself, and hears what the others told last."""
    await asyncio.sleep(phase)
    while True:
        gateway.tell()
        gateway.peers.heard({other.peers.owner: other.peers.own for other in gateways if other is not gateway})
        await asyncio.sleep(BEAT_SECONDS)


@asynccontextmanager
async def _gateways(count: int, queue: Queue, network: Network) -> AsyncIterator[None]:
    gateways = [_Gateway(f"gateway-{number}", queue, network) for number in range(count)]
    for gateway in gateways:
        await gateway.start()
    beats = [
        asyncio.create_task(_beat(gateway, gateways, BEAT_SECONDS * number / count))
        for number, gateway in enumerate(gateways)
    ]
    await asyncio.sleep(START_SECONDS)
    try:
        yield
    finally:
        for beat in beats:
            beat.cancel()
        for gateway in gateways:
            await gateway.stop()


@dataclass(frozen=True, slots=True)
class Result:
    stays: list[Stay]
    calls: list[int]
    """Attempts that reached each replica."""


async def _read_all(pages: Sequence[Page], network: Network, gateways: int) -> float:
    """When it began."""
    queue = Queue()
    async with _gateways(gateways, queue, network):
        begun = time.monotonic()
        for arrival, together in itertools.groupby(pages, key=lambda page: page.arrival):
            await asyncio.sleep(begun + arrival - time.monotonic())
            queue.put([page.claim for page in together])
        await queue.ended.wait()
    return begun


def pulled(pages: Sequence[Page], replicas: Sequence[Replica], gateways: int = 1) -> Result:
    """Have all pages read by that many gateways on the same replicas."""
    random.seed(0)  # lanes and health draw from it; each run should tell the same
    visits = {page.key: Visit(page) for page in pages}
    network = Network(replicas, visits)
    with network.installed():
        begun = virtual_time.run(_read_all(pages, network, gateways))
    return Result(
        [visit.stay(begun) for visit in visits.values()], [engine.calls for engine in network.engines.values()]
    )
