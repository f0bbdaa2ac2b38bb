"""Several journals on one PostgreSQL, as several gateways have them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest

from app.documents.records import Claim
from app.documents.states import DocumentState
from app.errors import PagefleetError
from app.journal import Journal
from tests.journals import PROFILES, new_document, read_all, settings_for, succeeded, told
from tests.servers import PostgresServer
from tests.waiting import until

CLAIM_SECONDS = 3.0


@pytest.fixture
def database_url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
async def open_journal(database_url: str, tmp_path: Path) -> AsyncIterator[Callable[[str], Awaitable[Journal]]]:
    """Opens a journal on the one database, in a data directory of the given name."""
    async with AsyncExitStack() as stack:

        async def open_journal(name: str) -> Journal:
            settings = settings_for(tmp_path / name, database_url=database_url, claim_seconds=CLAIM_SECONDS)
            journal = await Journal.open(settings)
            stack.push_async_callback(journal.close)
            return journal

        yield open_journal


@pytest.fixture
async def one(open_journal: Callable[[str], Awaitable[Journal]]) -> Journal:
    return await open_journal("one")


@pytest.fixture
async def two(open_journal: Callable[[str], Awaitable[Journal]]) -> Journal:
    return await open_journal("two")


async def test_gateways_may_start_together_on_an_empty_database(
    open_journal: Callable[[str], Awaitable[Journal]],
) -> None:
    journals = await asyncio.gather(*[open_journal(str(number)) for number in range(4)])
    await until(lambda: all(journal.peers.count == 4 for journal in journals))


async def test_a_document_is_watched_through_another_gateway(one: Journal, two: Journal) -> None:
    new = new_document(1)
    with two.changes.watch(new.id) as watch:
        await one.add_document(new)
        assert await watch.changed(60)
        (claim,) = await one.claim(1, PROFILES)
        assert await one.commit(claim, succeeded())
        assert await watch.changed(60)
        assert told(await two.events(new.id))[-1] == (3, "end", None)


async def test_pages_that_are_queued_and_documents_that_are_cancelled_are_told_to_all(
    one: Journal, two: Journal
) -> None:
    queued, cancelled = asyncio.Event(), asyncio.Event()
    new = new_document(1)
    await asyncio.sleep(0)
    two.changes.on_queued(queued.set)
    two.changes.on_cancelled(lambda document_id: cancelled.set() if document_id == new.id else None)
    await one.add_document(new)
    await asyncio.wait_for(queued.wait(), 60)
    await one.cancel(new.id)
    await asyncio.wait_for(cancelled.wait(), 60)


async def test_any_number_of_changes_is_told(one: Journal, two: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """One notification holds less than 8,000 bytes."""
    news = [new_document(1) for _ in range(500)]
    heard: set[str] = set()
    await until(lambda: one.peers.count == 2)
    monkeypatch.setattr(two.changes, "hear_changed", heard.add)
    two.changes.on_cancelled(heard.add)
    for told_of in (one.changes.changed, one.changes.cancelled):
        for new in news:
            told_of(new.id)
        await until(lambda: len(heard) == len(news))
        heard.clear()


async def test_what_no_notification_tells_is_found_all_the_same(one: Journal, two: Journal, database_url: str) -> None:
    new = new_document(1)
    await one.add_document(new)
    with two.changes.watch(new.id) as watch:
        await watch.changed(60)
        while await watch.changed(2.5):
            pass
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            await connection.execute("UPDATE documents SET seq = seq + 1")
        assert await watch.changed(60)


async def test_a_listening_connection_that_is_cut_comes_back(one: Journal, two: Journal, database_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )
    await test_pages_that_are_queued_and_documents_that_are_cancelled_are_told_to_all(one, two)


async def test_no_page_goes_to_two_gateways(one: Journal, two: Journal) -> None:
    for _ in range(4):
        await one.add_document(new_document(25))
    batches = await asyncio.gather(*[journal.claim(5, PROFILES) for journal in (one, two) for _ in range(10)])
    keys = [claim.key for batch in batches for claim in batch]
    assert len(keys) == len(set(keys)) == 100


async def test_a_claim_of_another_gateway_cannot_be_used(one: Journal, two: Journal) -> None:
    await one.add_document(new_document(1))
    (claim,) = await one.claim(1, PROFILES)
    assert not await two.commit(claim, succeeded())
    assert not await two.release(claim, attempts=0)
    assert await one.commit(claim, succeeded())


async def test_a_claim_whose_answer_was_lost_is_found_when_the_gateway_rejoins(one: Journal) -> None:
    new = new_document(5)
    await one.add_document(new)
    known, lost = await one.claim(2, PROFILES), await one.claim(2, PROFILES)
    committed = known[0]
    assert await one.commit(committed, succeeded())

    assert await one.rejoin(known) == {known[1]}

    assert not await one.commit(lost[0], succeeded())
    again = await one.claim(5, PROFILES)
    assert sorted(claim.page for claim in again) == [3, 4, 5]


async def test_a_gateway_that_was_taken_for_dead_may_come_back_twice_at_once(one: Journal, database_url: str) -> None:
    """By its beat, and because it has claims to compare."""
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("DELETE FROM gateways")
        await other.execute("INSERT INTO gateways (id, wants) VALUES (%s, '{}')", [one.owner])
        coming_back = asyncio.create_task(one.rejoin([]))
        await asyncio.sleep(0.2)
        await other.commit()
        assert await coming_back == set()


async def test_documents_go_through_any_gateways_at_once_and_nothing_is_lost_or_twice(
    open_journal: Callable[[str], Awaitable[Journal]],
) -> None:
    """Posts, claims, commits, hand-backs, cancels, retries and deletes by four, in every order."""
    journals = await asyncio.gather(*[open_journal(str(number)) for number in range(4)])
    news = [new_document(1 + number % 7, tenant=f"tenant{number % 3}") for number in range(60)]
    reading = True

    async def post(number: int) -> None:
        for new in news[number::4]:
            await journals[number].add_document(new)

    async def read(journal: Journal) -> None:
        while reading:
            claims = await journal.claim(6, PROFILES)
            await asyncio.gather(*[end(journal, claim, number) for number, claim in enumerate(claims)])
            await asyncio.sleep(0.005)

    async def end(journal: Journal, claim: Claim, number: int) -> None:
        if number % 5 == 0:
            await journal.release(claim, attempts=0)
        else:
            await journal.commit(claim, succeeded())

    async def stop(journal: Journal) -> None:
        for new in news[::6]:
            for call in (journal.cancel, journal.retry, journal.delete):
                try:
                    await call(new.id)
                except PagefleetError as error:
                    assert error.code() in ("not_found", "not_retryable")

    readers = [asyncio.create_task(read(journal)) for journal in journals]
    await asyncio.gather(*[post(number) for number in range(4)], stop(journals[0]), stop(journals[1]))
    reading = False
    await asyncio.gather(*readers)
    await read_all(journals[0])

    documents, _ = await journals[1].list_documents("tenant0", limit=1000)
    for tenant in ("tenant1", "tenant2"):
        documents += (await journals[1].list_documents(tenant, limit=1000))[0]
    assert {document.id for document in documents} >= {new.id for index, new in enumerate(news) if index % 6}
    for document in documents:
        assert document.state in (DocumentState.SUCCEEDED, DocumentState.CANCELLED)
        events = told(await journals[2].events(document.id))
        assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1))
        pages = [page for _, kind, page in events if kind == "page"]
        assert len(pages) == len(set(pages)) == document.counts.succeeded
        assert [kind for _, kind, _ in events].count("end") == 1
