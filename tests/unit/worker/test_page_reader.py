"""One page from drawing to outcome, on a real fleet of scripted replicas."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.documents.records import PageOutcome
from app.documents.states import OnPageError, PageState, Source
from app.errors import PagefleetError, PageTooLarge, PasswordWrong, SourceUnavailable, StoreUnavailable
from app.fleet import Fleet, lane, lane_id
from app.journal.blobs import FolderBlobs
from app.profiles import Profiles
from app.settings import MIB, Settings
from app.worker import page_reader
from app.worker.dispatcher import Dispatcher
from app.worker.images import ImageBuffer
from app.worker.page_reader import PageReader, Progress, backoff_seconds
from app.worker.source_files import SourceFiles
from tests.standins import Fault, Reply, StandIn
from tests.unit.worker.parts import DEADLINE_SECONDS, RENDER_SECONDS, SIZE, WARNING, Pen, claim, running_fleet, store
from tests.waiting import until

PROFILES = Profiles(Settings())

SERVER_ERROR = Reply(status=500)
CUT_SHORT = Reply(finish_reason="length")
UNPARSABLE = Reply(finish_reason="content_filter")
FULL = Reply(status=503, headers={"Retry-After": "0"})


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "BACKOFF_SECONDS", 0.0001)
    monkeypatch.setattr(page_reader, "MAX_BACKOFF_SECONDS", 0.01)


@dataclass
class Desk:
    """A page reader with all that it needs."""

    reader: PageReader
    replicas: list[StandIn]
    fleet: Fleet
    pen: Pen

    @property
    def calls(self) -> int:
        return sum(len(replica.calls) for replica in self.replicas)

    async def read(self, progress: Progress | None = None, **values: Any) -> PageOutcome:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.reader.read(claim(**values), progress or Progress(attempts=values.get("attempts", 0)))


@asynccontextmanager
async def desk(
    folder: Path,
    plans: Iterable[Iterable[Reply]],
    pen: Pen | None = None,
    slots: int = 1,
    blobs: FolderBlobs | None = None,
    **settings: Any,
) -> AsyncIterator[Desk]:
    """One replica of `slots` for each plan: what it answers first, before good answers."""
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(StandIn(slots=slots, text=lambda _: " read ")) for _ in plans]
        for replica, plan in zip(replicas, plans, strict=True):
            replica.plan(*plan)
        fleet = await stack.enter_async_context(running_fleet(*(replica.url for replica in replicas), **settings))
        dispatcher, image_buffer = Dispatcher(fleet), ImageBuffer(MIB, render_workers=2)
        fleet.on_change(dispatcher.pump)
        pen = pen or Pen()
        files = SourceFiles(blobs or store(folder, claim().blob_key), DEADLINE_SECONDS)
        reader = PageReader(PROFILES, files, pen, dispatcher, image_buffer)
        yield Desk(reader, replicas, fleet, pen)


async def test_a_good_answer_is_an_outcome_with_all_that_is_known(tmp_path: Path) -> None:
    async with desk(tmp_path, [[]]) as at:
        progress = Progress(attempts=1)
        outcome = await at.read(progress)
        (view,) = at.fleet.lanes()
    assert (outcome.state, outcome.source, outcome.text) == (PageState.SUCCEEDED, Source.MODEL, "read")
    assert (outcome.profile, outcome.model, outcome.lane) == ("generic", "standin", view.id)
    assert (outcome.size, outcome.warnings, outcome.error) == (SIZE, (WARNING,), None)
    assert (outcome.prompt_tokens, outcome.completion_tokens) == (100, 1)
    assert outcome.attempts == 2
    assert outcome.seconds.render == RENDER_SECONDS
    assert outcome.seconds.service > 0


async def test_a_page_that_was_queued_by_another_clock_has_not_waited_less_than_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path, [[]]) as at:
        outcome = await at.read(queued_at=datetime.now(UTC) + timedelta(hours=1))
    assert outcome.seconds.wait == 0


@pytest.mark.parametrize(
    "reply",
    [
        FULL,
        Reply(status=429, headers={"Retry-After": "0"}),
        Reply(fault=Fault.RESET),
        Reply(fault=Fault.CUT),
        Reply(fault=Fault.NO_FINISH),
        Reply(finish_reason="abort"),
    ],
    ids=["503", "429", "reset", "cut", "no finish", "abort"],
)
async def test_what_is_not_the_pages_fault_is_tried_again_and_not_charged(tmp_path: Path, reply: Reply) -> None:
    async with desk(tmp_path, [[reply]]) as at:
        outcome = await at.read()
        assert (outcome.state, outcome.attempts) == (PageState.SUCCEEDED, 1)
        assert at.calls == 2


@pytest.mark.parametrize(
    "reply",
    [SERVER_ERROR, UNPARSABLE, Reply(fault=Fault.MALFORMED), Reply(fault=Fault.IN_BAND_ERROR)],
    ids=["500", "unparsable", "malformed", "in-band error"],
)
async def test_a_bad_answer_is_charged_and_another_lane_is_asked(tmp_path: Path, reply: Reply) -> None:
    async with desk(tmp_path, [[reply], [reply]]) as at:
        outcome = await at.read(attempts=1)
        assert (outcome.state, outcome.attempts, at.calls) == (PageState.FAILED, 3, 2)
        assert [len(replica.calls) for replica in at.replicas] == [1, 1]


async def test_a_lane_that_failed_the_page_is_avoided_though_another_is_busier(tmp_path: Path) -> None:
    async with desk(tmp_path, [[FULL] * 10, []], slots=2) as at:
        idle, busier = at.replicas
        attempt = at.fleet.acquire(PROFILES["generic"].serves, avoid=[lane_id(idle.url, None)])
        assert attempt is not None
        with attempt:
            outcome = await at.read()
        assert outcome.state is PageState.SUCCEEDED
        assert (len(idle.calls), len(busier.calls)) == (1, 1)


@pytest.mark.parametrize(("reply", "code"), [(SERVER_ERROR, "replica_error"), (UNPARSABLE, "answer_unparsable")])
async def test_three_charged_attempts_are_the_end_and_the_last_one_says_why(
    tmp_path: Path, reply: Reply, code: str
) -> None:
    async with desk(tmp_path, [[reply], [reply], [reply]]) as at:
        outcome = await at.read(page=7)
        assert at.calls == 3
    assert (outcome.state, outcome.attempts) == (PageState.FAILED, 3)
    assert outcome.error is not None
    assert (outcome.error["code"], outcome.error["page"], outcome.error["retryable"]) == (code, 7, True)
    assert (outcome.size, outcome.warnings, outcome.profile) == (SIZE, (WARNING,), "generic")


@pytest.mark.parametrize(
    ("page_seconds", "stall_share", "code"),
    [(0.05, 2.0, "deadline_exceeded"), (600.0, 0.0001, "replica_error")],
    ids=["out of time", "stalled"],
)
async def test_an_attempt_without_an_answer_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_seconds: float, stall_share: float, code: str
) -> None:
    monkeypatch.setattr(lane, "FIRST_STALL_SHARE", stall_share)
    async with desk(tmp_path, [[Reply(fault=Fault.HANG)]], page_seconds=page_seconds) as at:
        outcome = await at.read(attempts=2)
    assert outcome.attempts == 3
    assert outcome.error is not None
    assert outcome.error["code"] == code


async def test_attempts_of_earlier_claims_count(tmp_path: Path) -> None:
    async with desk(tmp_path, [[SERVER_ERROR]]) as at:
        outcome = await at.read(attempts=2)
        assert (outcome.state, outcome.attempts, at.calls) == (PageState.FAILED, 3, 1)


async def test_uncharged_attempts_never_end_a_page(tmp_path: Path) -> None:
    async with desk(tmp_path, [[FULL] * 20]) as at:
        outcome = await at.read(attempts=2)
        assert (outcome.state, outcome.attempts, at.calls) == (PageState.SUCCEEDED, 3, 21)


@pytest.mark.parametrize(("reply", "code"), [(Reply(status=400), "replica_error"), (CUT_SHORT, "answer_truncated")])
async def test_what_every_lane_would_answer_is_final(tmp_path: Path, reply: Reply, code: str) -> None:
    async with desk(tmp_path, [[reply], [reply]]) as at:
        outcome = await at.read()
        assert (outcome.state, outcome.attempts, at.calls) == (PageState.FAILED, 1, 1)
    assert outcome.error is not None
    assert outcome.error["code"] == code


async def test_a_bad_answer_counts_against_its_lane(tmp_path: Path) -> None:
    async with desk(tmp_path, [[UNPARSABLE]]) as at:
        await at.read()
        assert [view.charged for view in at.fleet.lanes()] == [1]


async def test_one_drawing_serves_every_attempt(tmp_path: Path) -> None:
    async with desk(tmp_path, [[FULL, FULL]]) as at:
        await at.read()
        assert at.pen.drawn == [("book", 1)]
        images = {call.image for call in at.replicas[0].calls}
    assert len(at.replicas[0].calls) == 3
    assert images == {at.replicas[0].calls[0].image}


@pytest.mark.parametrize("fault", [PageTooLarge(), PasswordWrong()])
async def test_a_page_that_can_not_be_drawn_fails_without_an_attempt(tmp_path: Path, fault: PagefleetError) -> None:
    async with desk(tmp_path, [[]], Pen(lambda _: fault)) as at:
        outcome = await at.read(page=4)
        assert at.calls == 0
    assert (outcome.state, outcome.attempts, outcome.size) == (PageState.FAILED, 0, None)
    assert outcome.error == {**fault.problem(), "page": 4}


async def test_a_blank_page_is_read_without_an_attempt(tmp_path: Path) -> None:
    async with desk(tmp_path, [[]], Pen(blank=True)) as at:
        outcome = await at.read()
        assert at.calls == 0
    assert (outcome.state, outcome.source, outcome.text) == (PageState.SUCCEEDED, Source.BLANK, "")
    assert (outcome.model, outcome.lane, outcome.attempts, outcome.error) == (None, None, 0, None)
    assert (outcome.size, outcome.warnings, outcome.profile) == (SIZE, (WARNING,), "generic")
    assert (outcome.seconds.render, outcome.seconds.service) == (0.01, 0)


async def test_a_failed_pages_own_text_stands_in_where_that_was_asked_for(tmp_path: Path) -> None:
    async with desk(tmp_path, [[Reply(status=400)]], Pen(layer=" own text\n")) as at:
        outcome = await at.read(on_page_error=OnPageError.TEXT_LAYER)
    assert (outcome.state, outcome.source, outcome.text) == (PageState.SUCCEEDED, Source.TEXT_LAYER, "own text")
    assert (outcome.attempts, outcome.error, outcome.size) == (1, None, SIZE)
    assert [warning.code for warning in outcome.warnings] == [WARNING.code, "replica_error"]


async def test_its_text_stands_in_for_a_page_that_can_not_be_drawn(tmp_path: Path) -> None:
    async with desk(tmp_path, [[]], Pen(lambda _: PageTooLarge(), layer="own text")) as at:
        outcome = await at.read(on_page_error=OnPageError.TEXT_LAYER)
    assert (outcome.text, [warning.code for warning in outcome.warnings]) == ("own text", ["page_too_large"])


@pytest.mark.parametrize(
    ("layer", "values"),
    [
        pytest.param("own text", {"on_page_error": OnPageError.KEEP}, id="not asked for"),
        pytest.param("own text", {"on_page_error": OnPageError.FAIL}, id="the document stops instead"),
        pytest.param("own text", {"on_page_error": OnPageError.TEXT_LAYER, "media_type": "image/png"}, id="an image"),
        pytest.param(" \n", {"on_page_error": OnPageError.TEXT_LAYER}, id="no text"),
        pytest.param(PageTooLarge(), {"on_page_error": OnPageError.TEXT_LAYER}, id="unreadable text"),
    ],
)
async def test_a_failed_page_stays_failed_without_a_text_to_stand_in(
    tmp_path: Path, layer: str | Exception, values: dict[str, Any]
) -> None:
    async with desk(tmp_path, [[Reply(status=400)]], Pen(layer=layer)) as at:
        outcome = await at.read(**values)
    assert (outcome.state, outcome.source, outcome.text) == (PageState.FAILED, None, "")
    assert outcome.error is not None
    assert outcome.error["code"] == "replica_error"


async def test_a_store_that_is_away_while_the_text_is_fetched_hands_the_page_back(tmp_path: Path) -> None:
    async with desk(tmp_path, [[Reply(status=400)]], Pen(layer=StoreUnavailable())) as at:
        with pytest.raises(StoreUnavailable):
            await at.read(on_page_error=OnPageError.TEXT_LAYER)


async def test_a_file_that_is_gone_fails_the_page(tmp_path: Path) -> None:
    async with desk(tmp_path, [[]]) as at:
        await FolderBlobs(tmp_path).delete(claim().blob_key)
        outcome = await at.read(page=3, attempts=1)
        assert at.pen.drawn == []
    assert (outcome.state, outcome.attempts) == (PageState.FAILED, 1)
    assert outcome.error == {**SourceUnavailable("the uploaded file is gone").problem(), "page": 3}


async def test_a_page_that_waits_for_its_file_keeps_no_other_from_being_drawn(tmp_path: Path) -> None:
    class HalfAway(FolderBlobs):
        """Never answers for one document."""

        @asynccontextmanager
        async def local(self, key: str) -> AsyncIterator[Path]:
            if "lost" in key:
                await asyncio.Event().wait()
            async with super().local(key) as path:
                yield path

    store(tmp_path, claim().blob_key)
    async with desk(tmp_path, [[]], blobs=HalfAway(tmp_path)) as at:
        waiting = [asyncio.create_task(at.read(document="lost", page=page)) for page in range(1, 10)]
        outcome = await at.read()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert outcome.state is PageState.SUCCEEDED


async def test_the_services_own_trouble_says_nothing_about_the_page(tmp_path: Path) -> None:
    async with desk(tmp_path, [[]], Pen(lambda _: StoreUnavailable())) as at:
        progress = Progress(attempts=1)
        with pytest.raises(StoreUnavailable):
            await at.read(progress)
        assert progress.attempts == 1


async def test_a_page_is_in_flight_only_while_a_lane_has_it(tmp_path: Path) -> None:
    async with desk(tmp_path, [[SERVER_ERROR, Reply(seconds=0.05)]]) as at:
        (replica,) = at.replicas
        progress = Progress(attempts=0)
        seen = set()
        reading = asyncio.create_task(at.read(progress))
        while not reading.done():
            seen.add((replica.running > 0, progress.in_flight))
            await asyncio.sleep(0.001)
        assert (True, True) in seen
        assert (True, False) not in seen
        assert not progress.in_flight


@pytest.mark.parametrize("reply", [Reply(seconds=60), Reply(fault=Fault.HANG_MIDWAY)], ids=["silent", "midway"])
async def test_a_cancelled_page_is_aborted_at_its_replica_and_leaves_nothing_held(tmp_path: Path, reply: Reply) -> None:
    async with desk(tmp_path, [[reply]]) as at:
        (replica,) = at.replicas
        progress = Progress(attempts=0)
        reading = asyncio.create_task(at.read(progress))
        await until(lambda: replica.running == 1)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await until(lambda: replica.present == 0)
        assert replica.disconnects == 1
        assert progress == Progress(attempts=0)
        assert at.fleet.free_slots(PROFILES["generic"].serves) == 1


async def test_a_page_cancelled_in_its_back_off_asks_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "BACKOFF_SECONDS", 60)
    monkeypatch.setattr(page_reader, "MAX_BACKOFF_SECONDS", 60)
    async with desk(tmp_path, [[FULL]]) as at:
        progress = Progress(attempts=0)
        reading = asyncio.create_task(at.read(progress))
        await until(lambda: progress.faults_in_a_row == 1 and not progress.in_flight)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert at.calls == 1
        assert at.fleet.free_slots(PROFILES["generic"].serves) == 1


async def test_a_page_outlives_an_outage_of_any_length(tmp_path: Path) -> None:
    async with desk(tmp_path, [[FULL]]) as at:
        outcome = await at.read(Progress(attempts=0, faults_in_a_row=100_000))
    assert outcome.state is PageState.SUCCEEDED


def test_the_back_off_doubles_up_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "BACKOFF_SECONDS", 0.1)
    monkeypatch.setattr(page_reader, "MAX_BACKOFF_SECONDS", 5.0)
    assert [backoff_seconds(faults) for faults in (1, 2, 5, 6, 60, 100_000)] == [0.2, 0.4, 3.2, 5.0, 5.0, 5.0]
