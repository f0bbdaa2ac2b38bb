"""The page worker: claims pages a little ahead of the lanes, reads them, and commits each as it ends."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.documents.records import Claim, PageOutcome
from app.documents.states import PageState
from app.errors import InternalError, ServiceError, StoreUnavailable
from app.fleet import Fleet
from app.journal import Journal
from app.journal.blobs import Blobs
from app.profiles import Profile, Profiles
from app.rendering import Rendering
from app.settings import Settings
from app.telemetry import metrics
from app.telemetry.logs import get_logger
from app.worker.dispatcher import Dispatcher
from app.worker.images import ImageBuffer
from app.worker.page_reader import PageReader, Progress

POLL_SECONDS = 1.0
"""Safety net only: claims are made when a page is queued or a lane gets room."""
STORE_RETRY_SECONDS = 0.5
HAND_BACK_SECONDS = 5.0
"""A page that met trouble of the service's own is not tried again before."""

MIN_LOOK_AHEAD_PAGES = 2
"""Images held beyond the windows, which bound them otherwise to twice their sum: one lane of one slot needs two."""
RESERVED_PAGES = 1
"""Part of that bound which is kept for documents that have just come."""

_logger = get_logger("worker")


@dataclass(slots=True, eq=False)
class _Active:
    """A claimed page and the task that reads it."""

    claim: Claim
    progress: Progress
    task: "asyncio.Task[None]"


class Worker:
    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        blobs: Blobs,
        rendering: Rendering,
        fleet: Fleet,
        profiles: Profiles,
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._fleet = fleet
        self._profiles = profiles
        self._dispatcher = Dispatcher(fleet)
        image_buffer = ImageBuffer(settings.image_buffer_bytes, settings.render_workers)
        self._reader = PageReader(profiles, blobs, rendering, self._dispatcher, image_buffer)
        self._active: dict[Claim, _Active] = {}
        self._wake = asyncio.Event()
        self._newcomers = set(profiles.names)
        self._stopping = False
        self._claiming: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._journal.changes.on_queued(self._on_queued)
        self._journal.changes.on_cancelled(self._on_cancelled)
        self._fleet.on_change(self._on_lanes)
        self._claiming = asyncio.create_task(self._claim_forever(), name="claims")

    async def drain(self, grace_seconds: float) -> None:
        """Claim nothing more; let pages in flight end for at most `grace_seconds`, then hand the rest back."""
        self._stopping = True
        self._wake.set()
        if self._claiming is not None:
            await self._claiming
        if tasks := [active.task for active in self._active.values()]:
            await asyncio.wait(tasks, timeout=grace_seconds)
        rest = list(self._active.values())
        for active in rest:
            active.task.cancel()
        await asyncio.gather(*(active.task for active in rest), return_exceptions=True)
        for active in rest:
            with contextlib.suppress(StoreUnavailable):  # the next start frees the claim
                await self._hand_back(active.claim, active.progress)

    def _on_queued(self) -> None:
        self._newcomers.update(self._profiles.names)
        self._wake.set()

    def _on_lanes(self) -> None:
        self._dispatcher.pump()
        self._wake.set()

    def _on_cancelled(self, document_id: str) -> None:
        """Abort the document's attempts at their replicas; their commits would be fenced off anyway."""
        for active in self._active.values():
            if active.claim.document_id == document_id:
                active.task.cancel()

    async def _claim_forever(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                while not self._stopping and await self._claim_round():
                    pass
            except StoreUnavailable as error:
                _logger.error("claims wait for the store", detail=error.detail)
                await self._before_next_round()
            except Exception:
                # A fault of ours must cost one round, not all reading from here on.
                _logger.exception("claims failed unexpectedly")
                await self._before_next_round()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)

    async def _before_next_round(self) -> None:
        await asyncio.sleep(STORE_RETRY_SECONDS)
        self._on_queued()  # what the failed round would have claimed still waits

    async def _claim_round(self) -> bool:
        """Claim once for each profile that has room; whether anything was claimed."""
        claimed = 0
        for profile in self._profiles:
            claims = await self._claim_for(profile)
            claimed += len(claims)
            for claim in claims:
                self._begin(claim)
        return claimed > 0

    async def _claim_for(self, profile: Profile) -> list[Claim]:
        room = self._room(profile)
        if room.ahead > 0:
            return await self._journal.claim(room.ahead, [profile.name])
        if room.reserved <= 0 or profile.name not in self._newcomers:
            return []
        self._newcomers.discard(profile.name)
        claims = await self._journal.claim(room.reserved, [profile.name], without=room.waiting)
        if len(claims) == room.reserved:
            self._newcomers.add(profile.name)  # there may be more of them
        return claims

    def _room(self, profile: Profile) -> "_Room":
        pages = [active for active in self._active.values() if active.claim.profile == profile.name]
        waiting = [active.claim.document_id for active in pages if not active.progress.in_flight]
        window = self._fleet.window(profile.serves)
        if window == 0:
            return _Room(0, 0, set())
        limit = min(
            max(2 * window, window + MIN_LOOK_AHEAD_PAGES) - len(pages),
            self._settings.max_concurrent_pages - len(self._active),
        )
        look_ahead = self._fleet.free_slots(profile.serves) + self._settings.render_workers - len(waiting)
        return _Room(min(look_ahead, limit - RESERVED_PAGES), limit, set(waiting))

    def _begin(self, claim: Claim) -> None:
        progress = Progress(attempts=claim.attempts)
        task = asyncio.create_task(self._work(claim, progress), name=f"page {claim.document_id}/{claim.page}")
        self._active[claim] = _Active(claim, progress, task)
        metrics.PAGES_CLAIMED.set(len(self._active))
        task.add_done_callback(lambda _: self._end(claim))

    def _end(self, claim: Claim) -> None:
        del self._active[claim]
        metrics.PAGES_CLAIMED.set(len(self._active))
        if all(active.claim.document_id != claim.document_id for active in self._active.values()):
            self._dispatcher.forget(claim)
        self._wake.set()

    async def _work(self, claim: Claim, progress: Progress) -> None:
        try:
            outcome = await self._reader.read(claim, progress)
            await self._until_stored(lambda: self._journal.commit(claim, outcome))
        except ServiceError as error:
            _logger.warning("page handed back", document_id=claim.document_id, page=claim.page, code=error.code())
            await self._until_stored(lambda: self._hand_back(claim, progress, HAND_BACK_SECONDS))
        except Exception:
            # A fault of ours, or an outcome that can't be written, must end the page: it would stay claimed otherwise,
            # and be met again at every start.
            _logger.exception("page failed unexpectedly", document_id=claim.document_id, page=claim.page)
            problem = {**InternalError("the page met an unforeseen fault").problem(), "page": claim.page}
            failed = PageOutcome(PageState.FAILED, attempts=progress.attempts + 1, error=problem)
            await self._until_stored(lambda: self._journal.commit(claim, failed))

    async def _hand_back(self, claim: Claim, progress: Progress, not_before_seconds: float = 0) -> bool:
        return await self._journal.release(claim, attempts=progress.attempts, not_before_seconds=not_before_seconds)

    async def _until_stored(self, write: Callable[[], Awaitable[bool]]) -> None:
        """Write, however long the store is away: what a replica has read is not read again."""
        while True:
            try:
                await write()
                return
            except StoreUnavailable as error:
                _logger.error("a page waits for the store", detail=error.detail)
                await asyncio.sleep(STORE_RETRY_SECONDS)


@dataclass(frozen=True, slots=True)
class _Room:
    """Pages of one profile that may be claimed now."""

    ahead: int
    """Of any document: the look-ahead aims at free slots plus render workers."""
    reserved: int
    """Of documents none of whose pages wait here: a newcomer need not wait until the look-ahead has room."""
    waiting: set[str]
    """Ids of documents that have pages waiting here, drawn or being drawn."""
