"""Documents in the journal: written, read, told apart by tenant, erased."""

from datetime import UTC, datetime, timedelta

import pytest

from app.documents.records import Counts, Warn
from app.documents.states import DocumentState, OnPageError, PageState
from app.errors import NotFound, QueueFull
from app.journal import Journal
from tests.journals import PROFILES, new_document, read_all, succeeded, told


async def test_a_new_document_is_queued_with_all_its_fields(journal: Journal) -> None:
    new = new_document(
        [2, 5, 7],
        priority=1,
        profile="cpu",
        password="secret",
        metadata={"case": 7, "tags": ["a"]},
        warnings=(Warn("repaired", "the file was damaged"),),
        ttl_seconds=60,
        on_page_error=OnPageError.TEXT_LAYER,
    )

    document = await journal.add_document(new)

    assert document == await journal.document(new.id)
    for name in ("id", "tenant", "filename", "media_type", "bytes", "sha256", "blob_key", "profile", "priority"):
        assert getattr(document, name) == getattr(new, name)
    assert document.metadata == new.metadata
    assert document.warnings == new.warnings
    assert document.on_page_error is OnPageError.TEXT_LAYER
    assert document.password == "secret"
    assert "secret" not in repr(document)
    assert document.state is DocumentState.QUEUED
    assert document.counts == Counts(total=3, queued=3)
    assert document.seq == 1
    assert datetime.now(UTC) - document.created_at < timedelta(seconds=60)
    assert (document.started_at, document.ended_at, document.expires_at, document.error) == (None, None, None, None)


async def test_pages_are_listed_by_number_in_every_state(journal: Journal) -> None:
    new = new_document([2, 5, 7, 9])
    await journal.add_document(new)
    first, _ = await journal.claim(2, PROFILES)
    await journal.commit(first, succeeded())

    pages = await journal.pages(new.id)

    assert [page.number for page in pages] == [2, 5, 7, 9]
    assert [page.state for page in pages] == [
        PageState.SUCCEEDED,
        PageState.RUNNING,
        PageState.QUEUED,
        PageState.QUEUED,
    ]
    assert [page.number for page in await journal.pages(new.id, after=2, limit=2)] == [5, 7]


async def test_what_a_commit_stores_is_what_a_page_shows(journal: Journal) -> None:
    new = new_document(1)
    await journal.add_document(new)
    await read_all(journal)

    (page,) = await journal.pages(new.id)

    assert page.outcome == succeeded()
    assert page.seq == 2
    assert page.ended_at is not None
    assert page.ended_at == (await journal.document(new.id)).ended_at


async def test_one_page_is_read_by_its_number(journal: Journal) -> None:
    new = new_document([2, 5], tenant="one")
    await journal.add_document(new)
    await read_all(journal)

    assert [await journal.page(new.id, number, "one") for number in (2, 5)] == await journal.pages(new.id)

    assert await journal.page(new.id, 5) == await journal.page(new.id, 5, "one")
    for document_id, number, tenant in ((new.id, 3, "one"), (new.id, 2, "two"), ("nothing", 2, None)):
        with pytest.raises(NotFound):
            await journal.page(document_id, number, tenant)


async def test_a_document_of_ten_thousand_pages_is_whole(journal: Journal) -> None:
    new = new_document(10_000)

    document = await journal.add_document(new)

    assert document.counts == Counts(total=10_000, queued=10_000)
    assert [page.number for page in await journal.pages(new.id, limit=10_001)] == list(new.pages)


async def test_another_tenants_document_is_not_found(journal: Journal) -> None:
    new = new_document(tenant="one")
    await journal.add_document(new)

    assert (await journal.document(new.id, "one")).id == new.id
    for call in (journal.document, journal.cancel, journal.delete):
        with pytest.raises(NotFound):
            await call(new.id, "two")
    assert (await journal.document(new.id)).state is DocumentState.QUEUED


async def test_what_was_never_there_is_not_found_and_has_no_events(journal: Journal) -> None:
    for call in (journal.document, journal.cancel, journal.delete):
        with pytest.raises(NotFound):
            await call("nothing")
    assert await journal.events("nothing") == []
    assert await journal.pages("nothing") == []


async def test_a_full_queue_refuses_a_document_and_keeps_nothing_of_it(journal: Journal) -> None:
    await journal.add_document(new_document(9_999))
    refused = new_document(2)

    with pytest.raises(QueueFull) as caught:
        await journal.add_document(refused)

    assert caught.value.problem()["limit"] == 10_000
    assert await journal.queue_depth() == 9_999
    with pytest.raises(NotFound):
        await journal.document(refused.id)
    await journal.add_document(new_document(1))


async def test_the_queue_depth_counts_what_nobody_has_claimed(journal: Journal) -> None:
    assert await journal.queue_depth() == 0
    kept, cancelled = new_document(5, tenant="one"), new_document(3, tenant="two")
    await journal.add_document(kept)
    await journal.add_document(cancelled)
    assert await journal.queue_depth() == 8

    claims = await journal.claim(4, PROFILES)
    assert await journal.queue_depth() == 4
    await journal.release(claims[0], attempts=0)
    assert await journal.queue_depth() == 5
    await journal.cancel(cancelled.id)
    await read_all(journal)
    assert await journal.queue_depth() == 0


async def test_a_deleted_document_leaves_nothing(journal: Journal) -> None:
    kept, deleted = new_document(2), new_document(2)
    await journal.add_document(kept)
    await journal.add_document(deleted)
    await read_all(journal)

    assert await journal.delete(deleted.id) == deleted.blob_key

    for call in (journal.document, journal.cancel, journal.delete):
        with pytest.raises(NotFound):
            await call(deleted.id)
    assert await journal.events(deleted.id) == []
    assert await journal.pages(deleted.id) == []
    assert await journal.orphans([kept.blob_key, deleted.blob_key]) == {deleted.blob_key}
    assert told(await journal.events(kept.id))[-1][1] == "end"


async def test_deleting_a_document_stops_its_pages(journal: Journal) -> None:
    new = new_document(3)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)
    cancelled: list[str] = []
    journal.changes.on_cancelled(cancelled.append)

    await journal.delete(new.id)

    assert cancelled == [new.id]
    assert not await journal.commit(claim, succeeded())
    assert not await journal.release(claim, attempts=0)
    assert await journal.claim(10, PROFILES) == []
    assert await journal.queue_depth() == 0


async def test_a_profile_is_resolved_once_at_the_first_claim(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)

    (claim,) = await journal.claim(1, ["olmocr", "cpu"])

    assert claim.profile == "olmocr"
    assert (await journal.document(new.id)).profile == "olmocr"
    assert await journal.claim(1, ["cpu"]) == []
    (claim,) = await journal.claim(1, ["cpu", "olmocr"])
    assert claim.profile == "olmocr"


async def test_pages_of_other_profiles_wait(journal: Journal) -> None:
    other, ours = new_document(2, profile="olmocr"), new_document(2, profile="cpu")
    await journal.add_document(other)
    await journal.add_document(ours)

    assert {claim.document_id for claim in await journal.claim(10, ["cpu"])} == {ours.id}
    assert {claim.document_id for claim in await journal.claim(10, ["cpu", "olmocr"])} == {other.id}


async def test_a_claim_for_no_profile_or_no_page_gives_nothing(journal: Journal) -> None:
    await journal.add_document(new_document())
    assert await journal.claim(10, []) == []
    assert await journal.claim(0, PROFILES) == []


@pytest.mark.parametrize("document_id", ["", "\0", "x", "A" * 36, "0198'--", "\ud800", "é" * 5000])
async def test_what_is_no_id_is_not_found(journal: Journal, document_id: str) -> None:
    calls = (journal.document, journal.cancel, journal.retry, journal.delete)
    for call in (*calls, lambda text: journal.page(text, 1)):
        with pytest.raises(NotFound):
            await call(document_id)


async def test_a_page_number_that_no_file_has_is_not_found(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)
    for number in (-(2**80), -1, 0, 3, 2**31 - 1, 2**31, 2**80):
        with pytest.raises(NotFound):
            await journal.page(new.id, number)
