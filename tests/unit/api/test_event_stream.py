"""Event streams as reads of a real journal."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import aclosing, closing

import pytest
from fastapi import FastAPI

from app.api import event_stream
from app.api.cursors import Order
from app.api.event_stream import StreamEvent, event_order, follow
from app.documents.records import Claim
from app.errors import CursorInvalid
from app.journal import Journal
from tests.journals import PROFILES, new_document, succeeded
from tests.waiting import until

ROOT = "/ocr"
SHORT_SECONDS = 0.01
ORDERS = list(Order)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "BATCH", 2)


async def claimed(journal: Journal, pages: int) -> tuple[str, Mapping[int, Claim]]:
    """Id of a new document, and the claims of all its pages by number."""
    document = await journal.add_document(new_document(pages))
    return document.id, {claim.page: claim for claim in await journal.claim(pages, PROFILES)}


async def end(journal: Journal, claims: Mapping[int, Claim], *pages: int) -> None:
    for page in pages:
        assert await journal.commit(claims[page], succeeded(f"text {page}"))


async def events_now(journal: Journal, document_id: str, order: Order, cursor: str | None = None) -> list[StreamEvent]:
    """What a stream that is opened now sends at once."""
    position = event_order(order, journal, await journal.document(document_id), cursor, ROOT)
    return [event async for event in position.ready()]


async def is_over(journal: Journal, document_id: str, order: Order, cursor: str | None) -> bool:
    return await event_order(order, journal, await journal.document(document_id), cursor, ROOT).is_over()


def told(events: list[StreamEvent]) -> list[tuple[str, str | int]]:
    """Events as (id, page number or kind)."""
    return [(event.id, event.data["page"]["page"] if "page" in event.data else event.kind.value) for event in events]


# order


@pytest.mark.usefixtures("small_batches")
async def test_pages_are_told_as_they_end(journal: Journal) -> None:
    document, claims = await claimed(journal, 4)
    await end(journal, claims, 3, 1)
    assert told(await events_now(journal, document, Order.COMPLETED)) == [("1", "document"), ("2", 3), ("3", 1)]
    await end(journal, claims, 4, 2)
    events = await events_now(journal, document, Order.COMPLETED)
    assert told(events) == [("1", "document"), ("2", 3), ("3", 1), ("4", 4), ("5", 2), ("6", "end")]
    assert events[1].data["page"]["text"] == "text 3"
    assert events[0].data["document"]["links"]["self"] == f"{ROOT}/documents/{document}"


@pytest.mark.usefixtures("small_batches")
async def test_in_page_order_a_page_waits_for_all_before_it(journal: Journal) -> None:
    document, claims = await claimed(journal, 5)
    await end(journal, claims, 4, 2, 1)
    assert told(await events_now(journal, document, Order.PAGE)) == [("0.0", "document"), ("0.1", 1), ("0.2", 2)]
    await end(journal, claims, 3)
    assert told(await events_now(journal, document, Order.PAGE, "0.2")) == [("0.3", 3), ("0.4", 4)]
    await end(journal, claims, 5)
    events = await events_now(journal, document, Order.PAGE)
    assert [event.data["id"] for event in events] == ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]
    assert [event.data["seq"] for event in events] == [1, 4, 3, 5, 2, 6, 7]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("order", ORDERS)
async def test_cancelled_pages_have_no_event(journal: Journal, order: Order) -> None:
    document, claims = await claimed(journal, 6)
    await end(journal, claims, 1, 4)
    await journal.cancel(document)
    kinds = [what for _, what in told(await events_now(journal, document, order))]
    assert kinds == ["document", 1, 4, "end"]


# cursors


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cancelled", [False, True])
async def test_every_event_is_a_place_to_resume_from(journal: Journal, order: Order, cancelled: bool) -> None:
    document, claims = await claimed(journal, 5)
    await end(journal, claims, 2, 1, 3)
    if cancelled:
        await journal.cancel(document)
    else:
        await end(journal, claims, 5, 4)
    whole = await events_now(journal, document, order)
    for number, event in enumerate(whole[:-1], start=1):
        assert await events_now(journal, document, order, event.id) == whole[number:]
        assert not await is_over(journal, document, order, event.id)
    assert await is_over(journal, document, order, whole[-1].id)
    assert not await is_over(journal, document, order, None)


@pytest.mark.parametrize("order", ORDERS)
async def test_a_stream_is_not_over_before_the_document_is(journal: Journal, order: Order) -> None:
    document, claims = await claimed(journal, 2)
    await end(journal, claims, 1)
    last = (await events_now(journal, document, order))[-1]
    assert not await is_over(journal, document, order, last.id)


async def test_the_end_comes_after_the_last_of_the_pages_asked_for(journal: Journal) -> None:
    document = (await journal.add_document(new_document([2, 5]))).id
    claims = {claim.page: claim for claim in await journal.claim(2, PROFILES)}
    await end(journal, claims, 2, 5)
    events = told(await events_now(journal, document, Order.PAGE))
    assert events == [("0.0", "document"), ("0.2", 2), ("0.5", 5), ("0.6", "end")]


async def test_a_page_cursor_from_before_a_retry_starts_again_at_the_first_page(
    application: FastAPI, journal: Journal
) -> None:
    document, claims = await claimed(journal, 2)
    await end(journal, claims, 1, 2)
    database_path = application.state.context.settings.database_path
    with closing(sqlite3.connect(database_path, isolation_level=None)) as database:
        database.execute("UPDATE documents SET retries = 1 WHERE id = ?", (document,))
    assert told(await events_now(journal, document, Order.PAGE, "0.2")) == [("1.1", 1), ("1.2", 2), ("1.3", "end")]
    assert not await is_over(journal, document, Order.PAGE, "0.3")
    assert told(await events_now(journal, document, Order.PAGE, "1.2")) == [("1.3", "end")]


@pytest.mark.parametrize(
    ("order", "cursor"), [(Order.COMPLETED, "4"), (Order.COMPLETED, "0.1"), (Order.PAGE, "1.0"), (Order.PAGE, "2")]
)
async def test_a_cursor_that_no_event_has_is_refused(journal: Journal, order: Order, cursor: str) -> None:
    document, claims = await claimed(journal, 1)
    await end(journal, claims, 1)
    with pytest.raises(CursorInvalid):
        await events_now(journal, document, order, cursor)


# following


class Reader:
    """Follows a document's events in a task of its own."""

    def __init__(self, journal: Journal) -> None:
        self.events: list[StreamEvent] = []
        self._journal = journal

    async def read(self, document_id: str, order: Order) -> None:
        position = event_order(order, self._journal, await self._journal.document(document_id), None, ROOT)
        async for event in follow(self._journal, document_id, position):
            self.events.append(event)

    @property
    def told(self) -> list[str | int]:
        return [what for _, what in told(self.events)]


@pytest.mark.parametrize("order", ORDERS)
async def test_a_reader_gets_each_event_as_it_comes_up_to_the_end(journal: Journal, order: Order) -> None:
    document, claims = await claimed(journal, 3)
    reader = Reader(journal)
    reading = asyncio.create_task(reader.read(document, order))
    await until(lambda: reader.told == ["document"])
    for page in (1, 2):
        await end(journal, claims, page)
        await until(lambda page=page: reader.told == ["document", *range(1, page + 1)])  # type: ignore[misc]
    await end(journal, claims, 3)
    await asyncio.wait_for(reading, 10)
    assert reader.told == ["document", 1, 2, 3, "end"]


@pytest.mark.parametrize("order", ORDERS)
async def test_what_nobody_tells_of_is_found_all_the_same(
    journal: Journal, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "POLL_SECONDS", SHORT_SECONDS)
    document, claims = await claimed(journal, 1)
    reader = Reader(journal)
    reading = asyncio.create_task(reader.read(document, order))
    await until(lambda: reader.told == ["document"])
    with monkeypatch.context() as deaf:
        deaf.setattr(journal.changes, "changed", lambda document_id: None)
        await end(journal, claims, 1)
    await asyncio.wait_for(reading, 10)
    assert reader.told == ["document", 1, "end"]


@pytest.mark.parametrize("order", ORDERS)
async def test_a_stream_ends_without_an_end_when_its_document_is_deleted(journal: Journal, order: Order) -> None:
    document, claims = await claimed(journal, 3)
    await end(journal, claims, 1)
    reader = Reader(journal)
    reading = asyncio.create_task(reader.read(document, order))
    await until(lambda: reader.told == ["document", 1])
    await journal.delete(document)
    await asyncio.wait_for(reading, 10)
    assert reader.told == ["document", 1]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("order", ORDERS)
async def test_a_document_deleted_in_the_middle_of_a_replay_ends_it(journal: Journal, order: Order) -> None:
    document, claims = await claimed(journal, 6)
    await end(journal, claims, 1, 2, 3, 4, 5, 6)
    position = event_order(order, journal, await journal.document(document), None, ROOT)
    seen = []
    async for event in follow(journal, document, position):
        seen.append(event)
        if len(seen) == 2:
            await journal.delete(document)
    assert "end" not in [what for _, what in told(seen)]


async def test_a_reader_that_leaves_is_forgotten(journal: Journal) -> None:
    document, _ = await claimed(journal, 1)
    position = event_order(Order.COMPLETED, journal, await journal.document(document), None, ROOT)
    async with aclosing(follow(journal, document, position)) as events:
        await anext(events)
        assert document in journal.changes._watches
    assert document not in journal.changes._watches
