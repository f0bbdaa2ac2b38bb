"""on_page_error=fail: the first page that can't be read stops its document."""

import asyncio
from datetime import timedelta

import pytest

from app.documents.records import Counts
from app.documents.states import DocumentState, OnPageError, PageState
from app.journal import Journal
from tests.journals import PROFILES, failed, new_document, succeeded, told


async def test_a_failed_page_cancels_the_rest(journal: Journal) -> None:
    new = new_document(6, on_page_error=OnPageError.FAIL, ttl_seconds=60)
    await journal.add_document(new)
    one, two, three, _ = await journal.claim(4, PROFILES)
    await journal.commit(one, succeeded())

    assert await journal.commit(two, failed("the ink is gone"))

    document = await journal.document(new.id)
    assert document.state is DocumentState.FAILED
    assert document.counts == Counts(total=6, succeeded=1, failed=1, cancelled=4)
    assert document.ended_at is not None
    assert document.expires_at == document.ended_at + timedelta(seconds=60)
    assert [page.state for page in await journal.pages(new.id)] == [
        PageState.SUCCEEDED,
        PageState.FAILED,
        *[PageState.CANCELLED] * 4,
    ]
    assert told(await journal.events(new.id)) == [
        (1, "document", None),
        (2, "page", 1),
        (3, "page", 2),
        (4, "end", None),
    ]
    assert not await journal.commit(three, succeeded())
    assert not await journal.release(three, attempts=0)


async def test_the_documents_error_is_its_pages(journal: Journal) -> None:
    new = new_document([4, 6], on_page_error=OnPageError.FAIL)
    await journal.add_document(new)
    _, six = await journal.claim(2, PROFILES)
    await journal.commit(six, failed("the ink is gone"))

    error = (await journal.document(new.id)).error

    assert error is not None
    assert (error["code"], error["page"]) == ("document_failed", 6)
    assert error["detail"] == "a page's error stopped the document; page 6: replica_error: the ink is gone"


async def test_a_stopped_document_leaves_the_others_queued(journal: Journal) -> None:
    stopped, kept = new_document(5, on_page_error=OnPageError.FAIL), new_document(3)
    await journal.add_document(stopped)
    (claim,) = await journal.claim(1, PROFILES)
    await journal.add_document(kept)

    await journal.commit(claim, failed())

    assert await journal.queue_depth() == 3
    assert [claim.document_id for claim in await journal.claim(10, PROFILES)] == [kept.id] * 3


async def test_whoever_works_on_a_stopped_document_or_watches_it_is_told(journal: Journal) -> None:
    new = new_document(3, on_page_error=OnPageError.FAIL)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)
    stopped: list[str] = []
    journal.changes.on_cancelled(stopped.append)

    with journal.changes.watch(new.id) as watch:
        await journal.commit(claim, failed())
        assert await watch.changed(10)

    assert stopped == [new.id]


async def test_a_document_fails_by_its_last_page_too(journal: Journal) -> None:
    new = new_document(2, on_page_error=OnPageError.FAIL)
    await journal.add_document(new)
    one, two = await journal.claim(2, PROFILES)
    await journal.commit(one, succeeded())
    await journal.commit(two, failed())

    document = await journal.document(new.id)

    assert document.state is DocumentState.FAILED
    assert document.counts == Counts(total=2, succeeded=1, failed=1)
    assert [kind for _, kind, _ in told(await journal.events(new.id))] == ["document", "page", "page", "end"]


async def test_pages_that_end_at_the_same_moment_are_kept(journal: Journal) -> None:
    documents = [new_document(9, on_page_error=OnPageError.FAIL, tenant=tenant) for tenant in ("b", "a")]
    for new in documents:
        await journal.add_document(new)
    claims = await journal.claim(8, PROFILES)

    accepted = await asyncio.gather(
        *[journal.commit(claim, failed() if claim.page == 2 else succeeded()) for claim in claims]
    )

    assert all(accepted)
    for new in documents:
        document = await journal.document(new.id)
        assert document.state is DocumentState.FAILED
        assert document.counts == Counts(total=9, succeeded=3, failed=1, cancelled=5)
        events = told(await journal.events(new.id))
        assert [(seq, kind) for seq, kind, _ in events] == [
            (1, "document"),
            *[(seq, "page") for seq in range(2, 6)],
            (6, "end"),
        ]
    assert await journal.queue_depth() == 0


@pytest.mark.parametrize("on_page_error", [OnPageError.KEEP, OnPageError.TEXT_LAYER])
async def test_otherwise_a_failed_page_stops_nothing(journal: Journal, on_page_error: OnPageError) -> None:
    new = new_document(2, on_page_error=on_page_error)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)

    await journal.commit(claim, failed())

    assert (await journal.document(new.id)).counts == Counts(total=2, queued=1, failed=1)
    (claim,) = await journal.claim(1, PROFILES)
    assert await journal.commit(claim, succeeded())
    assert (await journal.document(new.id)).state is DocumentState.PARTIAL
