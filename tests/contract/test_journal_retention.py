"""Retention: documents whose time is over are erased, and known to have been."""

import asyncio

import pytest

from app.documents.records import NewDocument
from app.documents.states import DocumentState
from app.errors import Gone, NotFound, NotRetryable
from app.journal import Journal
from tests.journals import PROFILES, failed, new_document, read_all, told

OVER = 0
"""A time to live that is over when the document ends."""


async def add_ended(journal: Journal, pages: int = 1, **values: object) -> NewDocument:
    """A document that failed, to be swept at once."""
    new = new_document(pages, ttl_seconds=OVER, **values)
    await journal.add_document(new)
    await read_all(journal, failed())
    return new


async def state_of(journal: Journal, document_id: str) -> DocumentState | type[Exception]:
    try:
        return (await journal.document(document_id)).state
    except (Gone, NotFound) as error:
        return type(error)


async def test_only_what_has_ended_and_is_over_is_swept(journal: Journal) -> None:
    over = await add_ended(journal)
    kept = new_document(1, ttl_seconds=3600)
    await journal.add_document(kept)
    await read_all(journal)
    running, queued = new_document(1, ttl_seconds=OVER), new_document(1, ttl_seconds=OVER)
    await journal.add_document(running)
    await journal.claim(1, PROFILES)
    await journal.add_document(queued)

    assert await journal.sweep() == [over.blob_key]

    keys = [document.blob_key for document in (over, kept, running, queued)]
    assert await journal.orphans(keys) == {over.blob_key}
    assert told(await journal.events(kept.id))[-1][1] == "end"
    assert await journal.sweep() == []


async def test_a_swept_document_is_gone_for_its_tenant_and_never_was_for_others(journal: Journal) -> None:
    new = await add_ended(journal, tenant="one")
    await journal.sweep()

    for tenant, error in (("one", Gone), (None, Gone), ("two", NotFound)):
        for call in (journal.document, journal.cancel, journal.delete, journal.retry):
            with pytest.raises(error):
                await call(new.id, tenant)
        with pytest.raises(error):
            await journal.page(new.id, 1, tenant)
    assert await journal.pages(new.id) == []
    assert await journal.events(new.id) == []
    assert await journal.list_documents("one") == ([], None)


async def test_a_document_that_its_user_deleted_is_not_found_after_a_sweep_either(journal: Journal) -> None:
    new = await add_ended(journal)
    await journal.delete(new.id)
    assert await journal.sweep() == []
    assert await state_of(journal, new.id) is NotFound


async def test_a_sweep_takes_as_many_documents_as_it_may_the_longest_over_first(journal: Journal) -> None:
    keys = [(await add_ended(journal)).blob_key for _ in range(5)]

    swept = [await journal.sweep(2) for _ in range(4)]

    assert swept == [keys[:2], keys[2:4], keys[4:], []]


async def test_a_sweep_takes_fewer_documents_where_they_have_many_pages(journal: Journal) -> None:
    keys = []
    for pages in (2500, 1500, 500, 1):
        new = new_document(pages, ttl_seconds=OVER)
        await journal.add_document(new)
        await journal.cancel(new.id)
        keys.append(new.blob_key)

    swept = [await journal.sweep() for _ in range(4)]

    assert swept == [keys[:1], keys[1:3], keys[3:], []]


async def test_whoever_watches_a_document_is_told_of_its_sweep(journal: Journal) -> None:
    new = await add_ended(journal)
    with journal.changes.watch(new.id) as watch:
        await journal.sweep()
        assert await watch.changed(10)


async def test_a_retried_document_lives_again_until_its_next_end(journal: Journal) -> None:
    new = await add_ended(journal)
    await journal.retry(new.id)
    assert await journal.sweep() == []
    await read_all(journal)
    assert await journal.sweep() == [new.blob_key]


async def test_sweeps_at_once_take_each_document_once(journal: Journal) -> None:
    keys = [(await add_ended(journal)).blob_key for _ in range(6)]
    swept = await asyncio.gather(*[journal.sweep(4) for _ in range(4)])
    assert sorted(key for batch in swept for key in batch) == sorted(keys)


async def test_a_sweep_amid_retries_deletions_and_cancels_leaves_one_truth(journal: Journal) -> None:
    documents = [await add_ended(journal, 2) for _ in range(12)]
    kinds = [journal.retry, journal.delete, journal.cancel]
    calls = [kinds[index % 3](new.id) for index, new in enumerate(documents)]

    first, second, *results = await asyncio.gather(journal.sweep(4), journal.sweep(3), *calls, return_exceptions=True)

    assert isinstance(first, list)
    assert isinstance(second, list)
    for index, (new, result) in enumerate(zip(documents, results, strict=True)):
        state = await state_of(journal, new.id)
        if new.blob_key in first + second:
            assert state is Gone
            assert index % 3 == 2 or isinstance(result, Gone)  # a cancel before the sweep changes nothing
        else:
            assert not isinstance(result, Exception)
            assert state is (DocumentState.QUEUED, NotFound, DocumentState.FAILED)[index % 3]
    retried = sum(not isinstance(result, Exception) for result in results[::3])
    assert len(await read_all(journal)) == 2 * retried


async def test_a_document_is_swept_whatever_its_end(journal: Journal) -> None:
    cancelled = new_document(1, ttl_seconds=OVER)
    await journal.add_document(cancelled)
    await journal.cancel(cancelled.id)
    with pytest.raises(NotRetryable):
        await journal.retry(cancelled.id)
    assert await journal.sweep() == [cancelled.blob_key]
