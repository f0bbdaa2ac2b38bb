"""The page worker: reads the pages that this gateway has claimed, and commits each as it ends."""

import asyncio
import contextlib

from app.documents.drain_rate import DrainRate
from app.documents.records import Claim, PageOutcome
from app.documents.states import PageState
from app.errors import InternalError, ServiceError, StoreUnavailable
from app.fleet import Fleet
from app.journal import Journal
from app.journal.blobs import Blobs
from app.profiles import Profiles
from app.rendering import Rendering
from app.settings import Settings
from app.telemetry import metrics
from app.telemetry.logs import get_logger
from app.worker.active import ActivePage
from app.worker.claimer import Claimer
from app.worker.dispatcher import Dispatcher
from app.worker.images import ImageBuffer
from app.worker.outbox import Outbox
from app.worker.page_reader import PageReader, Progress
from app.worker.pulse import Pulse
from app.worker.source_files import SourceFiles

HAND_BACK_SECONDS = 5.0
"""A page that met trouble of the service's own is not tried again before."""

_logger = get_logger("worker")


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
        self._journal = journal
        self._fleet = fleet
        self._dispatcher = Dispatcher(fleet)
        image_buffer = ImageBuffer(settings.image_buffer_bytes, settings.render_workers)
        files = SourceFiles(blobs, settings.blob_seconds)
        self._reader = PageReader(profiles, files, rendering, self._dispatcher, image_buffer)
        self._active: dict[Claim, ActivePage] = {}
        self._claimer = Claimer(settings, journal, fleet, profiles, self._active, self._begin)
        self._outbox = Outbox()
        self._drain_rate = DrainRate()
        self._pulse = Pulse(journal, self._drain_rate, self._claimer.wants)

    def start(self) -> None:
        self._journal.changes.on_cancelled(self._on_cancelled)
        self._fleet.on_change(self._on_lanes)
        self._claimer.start()
        self._pulse.start()

    async def drain(self, grace_seconds: float) -> None:
        """Claim nothing more; let pages in flight end for at most `grace_seconds`, then hand the rest back."""
        await self._claimer.stop()
        if tasks := [page.task for page in self._active.values()]:
            await asyncio.wait(tasks, timeout=grace_seconds)
        rest = list(self._active.values())
        for page in rest:
            page.task.cancel()
        await asyncio.gather(*(page.task for page in rest), return_exceptions=True)
        await asyncio.gather(*(self._leave(page) for page in rest))
        await self._pulse.stop()

    async def _leave(self, page: ActivePage) -> None:
        with contextlib.suppress(StoreUnavailable):  # the claim is void once this gateway is gone
            await self._hand_back(page)

    def _on_lanes(self) -> None:
        self._dispatcher.pump()
        self._claimer.wake()

    def _on_cancelled(self, document_id: str) -> None:
        """Abort the document's attempts at their replicas; their commits would be fenced off anyway.

        Not so where this is late news: a document that was queued again meanwhile has new claims, which must not stay.
        """
        for page in self._active.values():
            if page.claim.document_id == document_id and not page.storing:
                page.task.cancel()
                page.task.add_done_callback(lambda _: self._claimer.doubt())

    def _begin(self, claim: Claim) -> None:
        name = f"page {claim.document_id}/{claim.page}"
        task = asyncio.create_task(self._work(claim), name=name)
        self._active[claim] = ActivePage(claim, Progress(attempts=claim.attempts), task)
        self._note_active()
        task.add_done_callback(lambda _: self._end(claim))

    def _end(self, claim: Claim) -> None:
        del self._active[claim]
        self._note_active()
        if all(page.claim.document_id != claim.document_id for page in self._active.values()):
            self._dispatcher.forget(claim)
        self._claimer.wake()

    def _note_active(self) -> None:
        metrics.PAGES_CLAIMED.set(len(self._active))
        self._drain_rate.note_work(bool(self._active))

    async def _work(self, claim: Claim) -> None:
        page = self._active[claim]
        try:
            await self._commit(page, await self._reader.read(claim, page.progress))
        except ServiceError as error:
            _logger.warning("page handed back", document_id=claim.document_id, page=claim.page, code=error.code())
            page.storing = True
            await self._outbox.send(lambda: self._hand_back(page, HAND_BACK_SECONDS))
        except Exception:
            # A fault of ours, or an outcome that can't be written, must end the page: it would stay claimed otherwise,
            # and be met again at every start.
            _logger.exception("page failed unexpectedly", document_id=claim.document_id, page=claim.page)
            await self._fail(page)

    async def _fail(self, page: ActivePage) -> None:
        claim = page.claim
        problem = {**InternalError("the page met an unforeseen fault").problem(), "page": claim.page}
        try:
            await self._commit(page, PageOutcome(PageState.FAILED, attempts=page.progress.attempts + 1, error=problem))
        except Exception:
            # The claimer finds it when it compares the claims, and it is read again.
            _logger.exception("page can't be ended", document_id=claim.document_id, page=claim.page)

    async def _commit(self, page: ActivePage, outcome: PageOutcome) -> None:
        page.storing = True
        if await self._outbox.send(lambda: self._journal.commit(page.claim, outcome)):
            self._drain_rate.note_page()

    async def _hand_back(self, page: ActivePage, not_before_seconds: float = 0) -> bool:
        attempts = page.progress.attempts
        return await self._journal.release(page.claim, attempts=attempts, not_before_seconds=not_before_seconds)
