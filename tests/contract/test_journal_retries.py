"""Retry: what was not read is queued again, and every replay is whole."""

import asyncio
from collections import Counter

import pytest

from app.documents.records import Counts, Document, NewDocument, PageOutcome
from app.documents.states import DocumentState, OnPageError, PageState
from app.errors import NotFound, NotRetryable, QueueFull
from app.journal import Journal
from app.settings import Settings
from tests.journals import PROFILES, failed, new_document, read_all, succeeded, told


async def add_read(journal: Journal, outcomes: str, **values: object) -> NewDocument:
    """A document whose pages ended as `outcomes` says: s or f."""
    new = new_document(len(outcomes), **values)
    await journal.add_document(new)
    for claim, outcome in zip(await journal.claim(len(outcomes), PROFILES), outcomes, strict=True):
        await journal.commit(claim, succeeded() if outcome == "s" else failed())
    return new


async def check_replay(journal: Journal, new: NewDocument) -> None:
    """Each page once, one end, last, and `seq` strictly rising to that of the document."""
    events = told(await journal.events(new.id))
    numbers = [seq for seq, _, _ in events]
    assert numbers == sorted(set(numbers))
    assert events[0] == (1, "document", None)
    assert events[-1] == ((await journal.document(new.id)).seq, "end", None)
    assert sorted(page for _, kind, page in events[1:-1] if kind == "page" and page) == list(new.pages)
    assert len(events) == len(new.pages) + 2


async def test_failed_pages_are_queued_again_and_read_ones_stay(journal: Journal) -> None:
    new = await add_read(journal, "sffs")
    before = await journal.document(new.id)

    document = await journal.retry(new.id)

    assert document == await journal.document(new.id)
    assert document.state is DocumentState.QUEUED
    assert document.counts == Counts(total=4, queued=2, succeeded=2)
    assert (document.ended_at, document.expires_at, document.error) == (None, None, None)
    assert (document.retries, document.seq) == (1, before.seq)
    pages = await journal.pages(new.id)
    assert [page.outcome for page in pages] == [succeeded(), *[PageOutcome(PageState.QUEUED)] * 2, succeeded()]
    assert [page.ended_at is None for page in pages] == [False, True, True, False]
    assert await journal.queue_depth() == 2


async def test_a_retried_page_starts_without_attempts_and_under_a_new_fence(journal: Journal) -> None:
    new = new_document(1)
    await journal.add_document(new)
    (old,) = await journal.claim(1, PROFILES)
    await journal.commit(old, failed())

    retried = await journal.retry(new.id)

    assert not await journal.commit(old, succeeded())
    (claim,) = await journal.claim(1, PROFILES)
    assert claim.attempts == 0
    assert claim.number > old.number + 1
    assert claim.queued_at > old.queued_at
    assert not await journal.commit(old, succeeded())
    assert await journal.commit(claim, succeeded())
    document = await journal.document(new.id)
    assert (document.state, document.started_at) == (DocumentState.SUCCEEDED, retried.started_at)


@pytest.mark.parametrize("outcomes", ["sfsf", "ffff"])
async def test_any_replay_has_each_page_once_and_one_end_last(journal: Journal, outcomes: str) -> None:
    new = await add_read(journal, outcomes)
    await check_replay(journal, new)
    for retries in (1, 2):
        end = (await journal.document(new.id)).seq
        await journal.retry(new.id)
        kept = told(await journal.events(new.id))
        assert [page for _, kind, page in kept if kind == "page"] == [
            number for number, outcome in enumerate(outcomes, start=1) if outcome == "s"
        ]
        assert "end" not in {kind for _, kind, _ in kept}

        await read_all(journal, failed() if retries == 1 else succeeded())

        assert (await journal.document(new.id)).retries == retries
        await check_replay(journal, new)
        resumed = told(await journal.events(new.id, after=end))
        assert [kind for _, kind, _ in resumed] == ["page"] * outcomes.count("f") + ["end"]
    assert (await journal.document(new.id)).state is DocumentState.SUCCEEDED


async def test_pages_cancelled_by_another_pages_error_are_queued_again(journal: Journal) -> None:
    new = new_document(5, on_page_error=OnPageError.FAIL)
    await journal.add_document(new)
    one, two, _ = await journal.claim(3, PROFILES)
    await journal.release(one, attempts=2, not_before_seconds=3600)
    await journal.commit(two, failed())

    document = await journal.retry(new.id)

    assert document.counts == Counts(total=5, queued=5)
    assert [(claim.page, claim.attempts) for claim in await read_all(journal)] == [(page, 0) for page in new.pages]
    assert (await journal.document(new.id)).state is DocumentState.SUCCEEDED
    await check_replay(journal, new)


async def test_failed_pages_of_a_document_that_is_being_read_join_the_rest(journal: Journal) -> None:
    new = new_document(4)
    await journal.add_document(new)
    one, two = await journal.claim(2, PROFILES)
    await journal.commit(one, failed())

    document = await journal.retry(new.id)

    assert document.state is DocumentState.RUNNING
    assert document.counts == Counts(total=4, queued=3, running=1)
    assert await journal.commit(two, succeeded())
    await read_all(journal)
    await check_replay(journal, new)


async def test_there_may_be_nothing_to_retry(journal: Journal) -> None:
    queued = new_document(1)
    read = await add_read(journal, "ss")
    await journal.add_document(queued)
    for new in (read, queued):
        before = await journal.document(new.id)
        with pytest.raises(NotRetryable):
            await journal.retry(new.id)
        assert await journal.document(new.id) == before


async def test_what_its_user_cancelled_stays_cancelled(journal: Journal) -> None:
    new = new_document(3, on_page_error=OnPageError.FAIL)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)
    await journal.commit(claim, failed())
    await journal.retry(new.id)
    cancelled = await journal.cancel(new.id)

    with pytest.raises(NotRetryable, match="user"):
        await journal.retry(new.id)

    assert await journal.document(new.id) == cancelled
    assert [kind for _, kind, _ in told(await journal.events(new.id))] == ["document", "end"]


async def test_what_is_not_there_or_anothers_is_not_retried(journal: Journal) -> None:
    new = await add_read(journal, "f", tenant="one")
    for document_id, tenant in ((new.id, "two"), ("nothing", None)):
        with pytest.raises(NotFound):
            await journal.retry(document_id, tenant)
    assert (await journal.retry(new.id, "one")).retries == 1


async def test_a_full_queue_refuses_a_retry_and_leaves_the_document_as_it_was(journal: Journal) -> None:
    new = await add_read(journal, "ff")
    await journal.add_document(new_document(9_999))
    before = await journal.document(new.id), await journal.pages(new.id), await journal.events(new.id)

    with pytest.raises(QueueFull):
        await journal.retry(new.id)

    assert (await journal.document(new.id), await journal.pages(new.id), await journal.events(new.id)) == before
    assert await journal.queue_depth() == 9_999


async def test_workers_and_watchers_are_told_of_a_retry(journal: Journal) -> None:
    new = await add_read(journal, "f")
    calls: list[None] = []
    journal.changes.on_queued(lambda: calls.append(None))
    with journal.changes.watch(new.id) as watch:
        await journal.retry(new.id)
        assert await watch.changed(10)
    assert len(calls) == 1


async def test_a_retried_document_neither_starves_nor_is_starved(journal: Journal) -> None:
    retried = await add_read(journal, "f" * 10)
    other = new_document(100)
    await journal.add_document(other)
    await journal.claim(50, PROFILES)

    await journal.retry(retried.id)

    served = Counter(claim.document_id for claim in await journal.claim(10, PROFILES))
    assert served == {retried.id: 5, other.id: 5}


async def test_of_many_retries_at_once_one_is_made(journal: Journal) -> None:
    new = await add_read(journal, "sf")

    results = await asyncio.gather(*[journal.retry(new.id) for _ in range(5)], return_exceptions=True)

    assert sorted(type(result).__name__ for result in results) == ["Document", *["NotRetryable"] * 4]
    assert (await journal.document(new.id)).retries == 1
    assert await journal.queue_depth() == 1


async def test_a_retry_outlives_restarts(settings: Settings) -> None:
    journal = await Journal.open(settings)
    new = await add_read(journal, "sffff")
    retried = await journal.retry(new.id)
    await journal.close()

    journal = await Journal.open(settings)
    assert await journal.document(new.id) == retried
    one, two = await journal.claim(2, PROFILES)
    await journal.commit(one, succeeded())
    await journal.close()

    journal = await Journal.open(settings)
    assert not await journal.commit(two, succeeded())
    assert (await journal.document(new.id)).counts == Counts(total=5, queued=3, succeeded=2)
    await read_all(journal)
    await check_replay(journal, new)
    await journal.close()


async def test_retry_and_cancel_at_once_leave_one_truth(journal: Journal) -> None:
    documents = [await add_read(journal, "sf") for _ in range(6)]
    calls = [call for new in documents for call in (journal.retry(new.id), journal.cancel(new.id))]

    results = await asyncio.gather(*calls)

    queued = 0
    for new, cancelled in zip(documents, results[1::2], strict=True):
        assert isinstance(cancelled, Document)
        kinds = [kind for _, kind, _ in told(await journal.events(new.id))]
        if cancelled.state is DocumentState.CANCELLED:
            assert await journal.document(new.id) == cancelled
            assert kinds == ["document", "page", "end"]
        else:  # it came first, to a document that had ended
            assert kinds == ["document", "page"]
            queued += 1
    assert await journal.queue_depth() == queued
