"""Cancel: at once, for good, and only what has not ended."""

from datetime import timedelta

from app.documents.records import Counts
from app.documents.states import DocumentState, PageState
from app.journal import Journal
from tests.journals import PROFILES, failed, new_document, read_all, succeeded, told


async def test_cancel_ends_every_page_that_has_not_ended(journal: Journal) -> None:
    new = new_document(5, ttl_seconds=60)
    await journal.add_document(new)
    one, two, _ = await journal.claim(3, PROFILES)
    await journal.commit(one, succeeded())
    await journal.commit(two, failed())

    document = await journal.cancel(new.id)

    assert document == await journal.document(new.id)
    assert document.state is DocumentState.CANCELLED
    assert document.counts == Counts(total=5, succeeded=1, failed=1, cancelled=3)
    assert document.ended_at is not None
    assert document.expires_at == document.ended_at + timedelta(seconds=60)
    assert [page.state for page in await journal.pages(new.id)] == [
        PageState.SUCCEEDED,
        PageState.FAILED,
        *[PageState.CANCELLED] * 3,
    ]
    assert await journal.claim(10, PROFILES) == []


async def test_cancelled_pages_have_no_event_and_the_end_is_told_once(journal: Journal) -> None:
    new = new_document(3)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)
    await journal.commit(claim, succeeded())

    await journal.cancel(new.id)
    await journal.cancel(new.id)

    assert told(await journal.events(new.id)) == [(1, "document", None), (2, "page", 1), (3, "end", None)]


async def test_cancel_can_be_repeated(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)

    assert await journal.cancel(new.id) == await journal.cancel(new.id)


async def test_a_document_that_has_ended_stays_as_it_is(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)
    await read_all(journal)
    before = await journal.document(new.id)

    assert await journal.cancel(new.id) == before
    assert await journal.document(new.id) == before


async def test_cancel_tells_watchers_and_workers(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)
    cancelled: list[str] = []
    journal.changes.on_cancelled(cancelled.append)

    with journal.changes.watch(new.id) as watch:
        await journal.cancel(new.id)
        await journal.cancel(new.id)
        assert await watch.changed(10)

    assert cancelled == [new.id]


async def test_a_cancelled_document_leaves_the_others_queued(journal: Journal) -> None:
    cancelled, kept = new_document(3), new_document(2)
    await journal.add_document(cancelled)
    await journal.add_document(kept)

    await journal.cancel(cancelled.id)

    assert [claim.document_id for claim in await journal.claim(10, PROFILES)] == [kept.id, kept.id]
