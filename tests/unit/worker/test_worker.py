"""The page worker over a real journal and a real fleet; only the render processes are left out."""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from structlog.typing import EventDict

from app.documents.records import Claim, Document, ImageSpec, Page, PageOutcome
from app.documents.states import DocumentState, PageState
from app.errors import StoreUnavailable
from app.fleet import Fleet
from app.journal import Journal, database, sqlite
from app.journal.blobs import FolderBlobs
from app.profiles import Profiles
from app.rendering import Drawing
from app.settings import Settings
from app.worker import Worker, claimer, outbox, page_reader
from app.worker import worker as worker_module
from tests.journals import new_document, settings_for
from tests.standins import Reply, StandIn
from tests.unit.worker.parts import DEADLINE_SECONDS, Pen, running_fleet
from tests.waiting import until


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(outbox, "STORE_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(claimer, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(claimer, "POLL_SECONDS", 60)  # nothing may depend on the safety net


class GatedPen(Pen):
    """Draws, or fails to, when it is told to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.open = asyncio.Event()

    async def draw(
        self, path: Path, media_type: str, page: int, spec: ImageSpec, password: str | None = None
    ) -> Drawing:
        self.drawn.append((path.parent.name, page))
        await self.open.wait()
        return self.draw_now(page)


def once(fault: Exception) -> Callable[[int], Exception | None]:
    """The first page to be drawn meets a fault."""
    faults = [fault]
    return lambda _: faults.pop() if faults else None


@dataclass
class Works:
    """A worker and the rooms around it."""

    settings: Settings
    journal: Journal
    worker: Worker
    fleet: Fleet
    pen: Pen

    async def post(self, pages: int = 1, **values: Any) -> str:
        """Id of a new document."""
        new = new_document(pages, **{"profile": "generic", **values})
        path = self.settings.blob_dir / new.blob_key
        path.parent.mkdir(parents=True)
        path.touch()
        return (await self.journal.add_document(new)).id

    async def ended(self, document_id: str) -> Document:
        async with asyncio.timeout(DEADLINE_SECONDS):
            with self.journal.changes.watch(document_id) as watch:
                while not (document := await self.journal.document(document_id)).state.ended:
                    await watch.changed(DEADLINE_SECONDS)
        return document

    async def pages(self, document_id: str) -> list[Page]:
        return await self.journal.pages(document_id)

    async def states(self, document_id: str) -> list[PageState]:
        return [page.state for page in await self.pages(document_id)]

    def drawn(self, document_id: str) -> list[int]:
        """Pages that were drawn, ascending; files come from the blob store in any order."""
        return sorted(page for document, page in self.pen.drawn if document == document_id)


@asynccontextmanager
async def works(
    folder: Path, *urls: str, pen: Pen | None = None, journal_type: type[Journal] = Journal, **values: Any
) -> AsyncIterator[Works]:
    """One render worker and, where `values` don't say otherwise, the defaults."""
    settings = settings_for(folder, **{"render_workers": 1, **values})
    async with AsyncExitStack() as stack:
        journal = await journal_type.open(settings)
        stack.push_async_callback(journal.close)
        fleet = await stack.enter_async_context(running_fleet(*urls))
        pen = pen or Pen()
        worker = Worker(settings, journal, FolderBlobs(settings.blob_dir), pen, fleet, Profiles(settings))
        worker.start()
        stack.push_async_callback(worker.drain, 0)
        yield Works(settings, journal, worker, fleet, pen)


async def test_every_page_of_a_document_is_read_once_and_committed(tmp_path: Path) -> None:
    async with StandIn(slots=2, text=lambda _: "read") as replica, works(tmp_path, replica.url) as at:
        document = await at.ended(await at.post(10))
        assert (document.state, document.counts.succeeded) == (DocumentState.SUCCEEDED, 10)
        assert len(replica.calls) == 10
        assert {page.outcome.text for page in await at.pages(document.id)} == {"read"}


async def test_nothing_is_remembered_of_a_document_that_has_ended(tmp_path: Path) -> None:
    async with StandIn() as replica, works(tmp_path, replica.url) as at:
        await at.ended(await at.post(2))
        await until(lambda: at.worker._active == {})
        assert at.worker._dispatcher._queue._tenants == {}


async def test_pages_of_a_profile_without_lanes_wait_and_hold_up_nobody(tmp_path: Path) -> None:
    async with StandIn() as replica, works(tmp_path, replica.url) as at:
        waiting = await at.post(3, profile="cpu")
        await at.ended(await at.post(3))
        assert await at.states(waiting) == [PageState.QUEUED] * 3
        assert at.drawn(waiting) == []


async def test_a_lane_that_comes_later_reads_what_waits(tmp_path: Path) -> None:
    async with StandIn() as replica, works(tmp_path) as at:
        document = await at.post(2)
        at.fleet.add_endpoint(replica.url)
        assert (await at.ended(document)).state is DocumentState.SUCCEEDED


# claims


async def test_no_more_pages_are_drawn_than_lanes_and_render_workers_can_use(tmp_path: Path) -> None:
    async with StandIn(slots=4) as replica, works(tmp_path, replica.url) as at:
        replica.always(Reply(seconds=60))
        book = await at.post(20)
        await until(lambda: replica.running == 4 and len(at.pen.drawn) == 5)
        await asyncio.sleep(0.05)
        assert at.drawn(book) == [1, 2, 3, 4, 5]  # four in flight, and one ahead for the one render worker


@pytest.mark.parametrize("render_workers", [1, 8])
async def test_a_newcomer_is_drawn_while_the_look_ahead_is_full(tmp_path: Path, render_workers: int) -> None:
    async with StandIn(slots=1) as replica, works(tmp_path, replica.url, render_workers=render_workers) as at:
        replica.always(Reply(seconds=60))
        book = await at.post(20)
        await until(lambda: replica.running == 1 and len(at.pen.drawn) == 2)
        letter = await at.post(5)
        await until(lambda: at.drawn(letter) == [1])
        another = await at.post(5)
        await asyncio.sleep(0.05)
        assert at.drawn(book) == [1, 2]
        assert at.drawn(letter) == [1]
        assert at.drawn(another) == []  # twice the window, or two more than it, is held at most


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_pages_in_hand_never_exceed_the_limit_of_the_gateway(tmp_path: Path, limit: int) -> None:
    async with StandIn(slots=16) as replica, works(tmp_path, replica.url, max_concurrent_pages=limit) as at:
        await at.ended(await at.post(6))
        assert replica.peak <= limit


# trouble


async def test_trouble_of_the_service_hands_the_page_back_for_a_while(tmp_path: Path) -> None:
    pen = Pen(once(StoreUnavailable("the disk is away")))
    async with StandIn() as replica, works(tmp_path, replica.url, pen=pen) as at:
        document = await at.post(1)
        await until(lambda: at.drawn(document) == [1])
        await at.ended(await at.post(3))
        (page,) = await at.pages(document)
        assert (page.state, page.outcome.attempts) == (PageState.QUEUED, 0)
        assert at.drawn(document) == [1]


async def test_a_page_that_was_handed_back_is_read_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "HAND_BACK_SECONDS", 0.05)
    pen = Pen(once(StoreUnavailable("the disk is away")))
    async with StandIn() as replica, works(tmp_path, replica.url, pen=pen) as at:
        document = await at.ended(await at.post(1))
        (page,) = await at.pages(document.id)
        assert (page.state, page.outcome.attempts) == (PageState.SUCCEEDED, 1)
        assert at.drawn(document.id) == [1, 1]


async def test_an_unforeseen_fault_ends_its_page_only(tmp_path: Path) -> None:
    pen = Pen(lambda page: RuntimeError("a secret path") if page == 2 else None)
    async with StandIn() as replica, works(tmp_path, replica.url, pen=pen) as at:
        document = await at.ended(await at.post(3))
        assert document.state is DocumentState.PARTIAL
        error = (await at.pages(document.id))[1].outcome.error
        assert error is not None
        assert (error["code"], error["page"]) == ("internal_error", 2)
        assert "secret" not in str(error)


class Choosy(Journal):
    """Can't write one text, by a fault of our own."""

    async def commit(self, claim: Claim, outcome: PageOutcome) -> bool:
        if outcome.text == "unwritable":
            raise OverflowError("no column holds this")
        return await super().commit(claim, outcome)


async def test_an_outcome_that_can_not_be_written_ends_its_page_only(tmp_path: Path) -> None:
    async with StandIn(text=lambda _: "read") as replica, works(tmp_path, replica.url, journal_type=Choosy) as at:
        replica.plan(Reply(text="unwritable"))
        document = await at.ended(await at.post(3))
        assert document.counts.succeeded == 2
        (error,) = (page.outcome.error for page in await at.pages(document.id) if page.outcome.error)
        assert error["code"] == "internal_error"


class Broken(Journal):
    """Can't write anything, by a fault of our own, until it is mended."""

    mended = False

    async def commit(self, claim: Claim, outcome: PageOutcome) -> bool:
        if not self.mended:
            raise OverflowError("no column holds this")
        return await super().commit(claim, outcome)


async def test_a_page_that_can_not_be_ended_does_not_stay_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claimer, "COMPARE_SECONDS", 0.1)
    monkeypatch.setattr(claimer, "POLL_SECONDS", 0.02)
    async with StandIn() as replica, works(tmp_path, replica.url, journal_type=Broken) as at:
        assert isinstance(at.journal, Broken)
        document = await at.post(1)
        await until(lambda: len(replica.calls) == 1 and not at.worker._active)
        at.journal.mended = True
        assert (await at.ended(document)).state is DocumentState.SUCCEEDED


class Stumbling(Journal):
    """Its first claim fails by a fault of our own."""

    stumbled = False

    async def claim(self, limit: int, profiles: Sequence[str], without: Collection[str] = ()) -> list[Claim]:
        if not self.stumbled:
            self.stumbled = True
            raise OverflowError("no column holds this")
        return await super().claim(limit, profiles, without)


async def test_claims_go_on_after_an_unforeseen_fault(tmp_path: Path) -> None:
    async with StandIn() as replica, works(tmp_path, replica.url, journal_type=Stumbling) as at:
        document = await at.ended(await at.post(3))
        assert document.state is DocumentState.SUCCEEDED


@contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """The store is away: another program holds the write lock of the database."""
    with closing(sqlite3.connect(settings.database_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture
def impatient_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A locked database is given up at once."""
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.01)
    monkeypatch.setattr(database, "_REPEAT_AFTER_SECONDS", ())


def complaints(caught: list[EventDict], event: str) -> int:
    return sum(entry["event"] == event for entry in caught)


@pytest.mark.usefixtures("impatient_store")
async def test_a_page_that_was_read_is_committed_when_the_store_is_back(tmp_path: Path) -> None:
    pen = GatedPen()
    async with StandIn() as replica, works(tmp_path, replica.url, pen=pen, render_workers=2) as at:
        document = await at.post(2)
        await until(lambda: at.drawn(document) == [1, 2])
        with locked(at.settings), capture_logs() as caught:
            pen.open.set()
            await until(lambda: complaints(caught, "pages wait for the store") == 1)
            await asyncio.sleep(0.05)
        assert (await at.ended(document)).counts.succeeded == 2
        assert len(replica.calls) == 2


@pytest.mark.usefixtures("impatient_store")
async def test_claims_wait_for_the_store(tmp_path: Path) -> None:
    async with StandIn() as replica, works(tmp_path) as at:
        document = await at.post(2)
        with locked(at.settings), capture_logs() as caught:
            at.fleet.add_endpoint(replica.url)
            await until(lambda: complaints(caught, "claims wait for the store") == 1)
        assert (await at.ended(document)).state is DocumentState.SUCCEEDED


@pytest.mark.usefixtures("impatient_store")
async def test_a_page_is_handed_back_when_the_store_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "HAND_BACK_SECONDS", 0.01)
    pen = GatedPen(once(StoreUnavailable()))
    async with StandIn() as replica, works(tmp_path, replica.url, pen=pen) as at:
        document = await at.post(1)
        await until(lambda: at.drawn(document) == [1])
        with locked(at.settings), capture_logs() as caught:
            pen.open.set()
            await until(lambda: complaints(caught, "pages wait for the store") == 1)
        assert (await at.ended(document)).state is DocumentState.SUCCEEDED


class Away(Journal):
    """Commits fail while the test says so, and are counted."""

    away = False
    refused = 0

    async def commit(self, claim: Claim, outcome: PageOutcome) -> bool:
        if self.away:
            self.refused += 1
            raise StoreUnavailable("the database is away")
        return await super().commit(claim, outcome)


async def test_many_pages_that_wait_for_the_store_cost_it_no_more_than_one(tmp_path: Path) -> None:
    async with StandIn(slots=64) as replica, works(tmp_path, replica.url, journal_type=Away) as at:
        journal = at.journal
        assert isinstance(journal, Away)
        journal.away = True
        document = await at.post(64)
        await until(lambda: len(replica.calls) == 64 and replica.running == 0)
        await until(lambda: journal.refused >= 64 + 10)
        seen, since = journal.refused, time.monotonic()
        await asyncio.sleep(0.2)
        assert journal.refused - seen <= (time.monotonic() - since) / outbox.STORE_RETRY_SECONDS + 1
        journal.away = False
        assert (await at.ended(document)).counts.succeeded == 64
        assert len(replica.calls) == 64


class Forgetful(Journal):
    """The answer to its first claim is lost."""

    lost: tuple[Claim, ...] = ()

    async def claim(self, limit: int, profiles: Sequence[str], without: Collection[str] = ()) -> list[Claim]:
        claims = await super().claim(limit, profiles, without)
        if claims and not self.lost:
            self.lost = tuple(claims)
            raise StoreUnavailable("the connection broke")
        return claims


async def test_pages_whose_claim_got_no_answer_are_claimed_again(tmp_path: Path) -> None:
    async with StandIn(slots=2) as replica, works(tmp_path, replica.url, journal_type=Forgetful) as at:
        document = await at.ended(await at.post(5))
        assert isinstance(at.journal, Forgetful)
        assert at.journal.lost
        assert document.counts.succeeded == 5
        assert at.drawn(document.id) == [1, 2, 3, 4, 5]


def take_over(settings: Settings, page: int) -> None:
    """Another gateway claims a page that was ours."""
    with closing(sqlite3.connect(settings.database_path, isolation_level=None)) as other:
        other.execute("INSERT INTO gateways (id, wants) VALUES ('another', '{}')")
        other.execute(
            "UPDATE pages SET claim_owner = 'another', claim_number = claim_number + 2 WHERE number = ?", (page,)
        )


async def test_pages_that_others_have_taken_over_are_aborted_and_the_rest_goes_on(tmp_path: Path) -> None:
    async with StandIn(slots=2) as replica, works(tmp_path, replica.url) as at:
        replica.always(Reply(seconds=60))
        document = await at.post(2)
        await until(lambda: replica.running == 2)
        take_over(at.settings, page=1)
        at.journal.changes.doubt()
        await until(lambda: replica.disconnects == 1)
        await asyncio.sleep(0.05)
        assert replica.running == 1
        assert await at.states(document) == [PageState.RUNNING] * 2


async def test_a_page_of_which_nobody_told_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimer, "POLL_SECONDS", 0.02)
    async with StandIn() as replica, works(tmp_path, replica.url) as at:
        monkeypatch.setattr(at.journal.changes, "queued", lambda: None)
        assert (await at.ended(await at.post(2))).state is DocumentState.SUCCEEDED


class Counting(Journal):
    claims = 0

    async def claim(self, limit: int, profiles: Sequence[str], without: Collection[str] = ()) -> list[Claim]:
        self.claims += 1
        return await super().claim(limit, profiles, without)


async def test_pages_that_end_cause_no_claims_when_the_queue_is_known_to_be_empty(tmp_path: Path) -> None:
    async with StandIn(slots=30) as replica, works(tmp_path, replica.url, journal_type=Counting) as at:
        assert isinstance(at.journal, Counting)
        document = await at.ended(await at.post(30))
        assert document.counts.succeeded == 30
        assert at.journal.claims <= 10


# other gateways


@dataclass
class Greedy:
    """Another gateway that wants every slot that it can get."""

    mine: int
    owner: str = "me"

    def wants(self, pool: str) -> dict[str, int]:
        return {"me": self.mine, "another": 1_000}


def wanted(at: Works) -> int:
    return at.worker._claimer.wants()["generic"]


async def test_a_gateway_wants_all_slots_while_the_queue_may_hold_more(tmp_path: Path) -> None:
    async with StandIn(slots=4) as replica, works(tmp_path, replica.url) as at:
        replica.always(Reply(seconds=60))
        await at.post(2)
        await until(lambda: replica.running == 2 and wanted(at) == 2)
        await at.post(20)
        await until(lambda: replica.running == 4 and wanted(at) == 4)
        draining = asyncio.create_task(at.worker.drain(0.2))
        await until(lambda: at.worker._active == {} and wanted(at) == 0)
        await draining


async def test_a_gateway_whose_lanes_are_all_down_wants_nothing(tmp_path: Path) -> None:
    async with works(tmp_path) as at:
        await at.post(2)
        assert wanted(at) == 0


async def test_a_gateway_claims_no_more_than_its_share_can_read(tmp_path: Path) -> None:
    async with StandIn(slots=8) as replica, works(tmp_path, replica.url) as at:
        at.fleet.share_with(Greedy(mine=2), lambda _: "generic")
        replica.always(Reply(seconds=60))
        document = await at.post(20)
        await until(lambda: replica.running == 2)
        await asyncio.sleep(0.05)
        assert (await at.journal.document(document)).counts.running == 3  # one ahead for the one render worker


async def test_a_gateway_without_a_share_claims_nothing_until_it_gets_one(tmp_path: Path) -> None:
    async with StandIn(slots=1) as replica, works(tmp_path, replica.url) as at:
        rivals = Greedy(mine=0)
        at.fleet.share_with(rivals, lambda _: "generic")
        document = await at.post(1)
        await asyncio.sleep(0.05)
        assert await at.states(document) == [PageState.QUEUED]
        assert wanted(at) == 1
        rivals.wants = lambda pool: {"me": 1}  # type: ignore[method-assign]
        at.fleet.reshare()
        assert (await at.ended(document)).state is DocumentState.SUCCEEDED


async def test_the_pulse_tells_what_this_gateway_wants_and_how_fast_it_reads(tmp_path: Path) -> None:
    async with StandIn(slots=4) as replica, works(tmp_path, replica.url) as at:
        await at.ended(await at.post(8))
        replica.always(Reply(seconds=60))
        await at.post(20)
        await until(lambda: replica.running == 4)
        at.worker._pulse.beat()
        assert at.journal.peers.wants("generic") == {at.journal.owner: 4}
        assert at.journal.peers.pages_per_second > 0
        assert (REGISTRY.get_sample_value("pagefleet_drain_rate_pages_per_second") or 0) > 0
        assert REGISTRY.get_sample_value("pagefleet_gateways") == 1


# cancel


async def test_a_cancelled_document_leaves_the_lane_to_others_wherever_its_pages_are(tmp_path: Path) -> None:
    async with StandIn(slots=1) as replica, works(tmp_path, replica.url) as at:
        replica.plan(Reply(seconds=60))
        book = await at.post(20)  # a page in flight, and one that waits for the lane
        await until(lambda: replica.running == 1 and len(at.pen.drawn) == 2)
        await at.journal.cancel(book)
        assert (await at.ended(await at.post(3))).state is DocumentState.SUCCEEDED
        assert replica.disconnects == 1
        assert len(replica.calls) == 4
        assert at.drawn(book) == [1, 2]


async def test_a_document_cancelled_while_it_is_drawn_frees_the_render_worker(tmp_path: Path) -> None:
    pen = GatedPen()
    async with StandIn() as replica, works(tmp_path, replica.url, pen=pen) as at:
        book = await at.post(20)
        await until(lambda: len(at.drawn(book)) == 1)  # the others wait for the render worker
        await at.journal.cancel(book)
        pen.open.set()
        assert (await at.ended(await at.post(3))).state is DocumentState.SUCCEEDED
        assert len(at.drawn(book)) == 1
        assert len(replica.calls) == 3


async def test_late_news_of_a_cancel_does_not_keep_a_page_that_was_queued_again(tmp_path: Path) -> None:
    async with StandIn(slots=1) as replica, works(tmp_path, replica.url) as at:
        replica.plan(Reply(seconds=60))
        document = await at.post(1)
        await until(lambda: replica.running == 1)
        at.journal.changes.hear_cancelled(document)
        assert (await at.ended(document)).state is DocumentState.SUCCEEDED
        assert replica.disconnects == 1


# drain


async def test_a_drain_lets_pages_in_flight_end_and_claims_no_more(tmp_path: Path) -> None:
    async with StandIn(slots=2) as replica, works(tmp_path, replica.url) as at:
        replica.always(Reply(seconds=0.05))
        document = await at.post(40)
        await until(lambda: replica.running == 2)
        await at.worker.drain(DEADLINE_SECONDS)
        states = Counter(await at.states(document))
        assert states == {PageState.SUCCEEDED: len(replica.calls), PageState.QUEUED: 40 - len(replica.calls)}


async def test_what_has_not_ended_within_the_grace_time_is_handed_back_with_its_attempts(tmp_path: Path) -> None:
    async with StandIn(slots=1) as replica, works(tmp_path, replica.url) as at:
        replica.plan(Reply(status=500), Reply(seconds=60))
        document = await at.post(3)
        await until(lambda: len(replica.calls) == 2)
        await at.worker.drain(0.01)
        assert replica.disconnects == 1
        assert await at.states(document) == [PageState.QUEUED] * 3
        assert [page.outcome.attempts for page in await at.pages(document)] == [1, 0, 0]


@pytest.mark.usefixtures("impatient_store")
async def test_a_drain_ends_though_the_store_is_away(tmp_path: Path) -> None:
    async with StandIn(slots=1) as replica, works(tmp_path, replica.url) as at:
        replica.always(Reply(seconds=60))
        document = await at.post(1)
        await until(lambda: replica.running == 1)
        with locked(at.settings):
            await at.worker.drain(0)
        assert await at.states(document) == [PageState.RUNNING]  # the next start frees it
