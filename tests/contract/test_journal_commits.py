"""Commits: how documents end, what the fence drops, and the events."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from app.documents.records import Claim, Counts
from app.documents.states import DocumentState
from app.journal import Journal
from tests.journals import PROFILES, failed, new_document, read_all, succeeded, told


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ("ss", DocumentState.SUCCEEDED),
        ("sf", DocumentState.PARTIAL),
        ("fs", DocumentState.PARTIAL),
        ("ff", DocumentState.FAILED),
        ("s", DocumentState.SUCCEEDED),
        ("f", DocumentState.FAILED),
    ],
)
async def test_the_last_page_ends_the_document(journal: Journal, outcomes: str, state: DocumentState) -> None:
    new = new_document(len(outcomes), ttl_seconds=60)
    await journal.add_document(new)
    claims = await journal.claim(10, PROFILES)
    for claim, outcome in zip(claims, outcomes, strict=True):
        assert not (await journal.document(new.id)).state.ended
        assert await journal.commit(claim, succeeded() if outcome == "s" else failed())

    document = await journal.document(new.id)

    assert document.state is state
    assert document.counts == Counts(total=len(outcomes), succeeded=outcomes.count("s"), failed=outcomes.count("f"))
    assert document.ended_at is not None
    assert document.expires_at == document.ended_at + timedelta(seconds=60)
    assert (document.error is not None) == (state is DocumentState.FAILED)


async def test_a_failed_document_names_its_first_pages_error(journal: Journal) -> None:
    new = new_document([4, 6])
    await journal.add_document(new)
    first, last = await journal.claim(2, PROFILES)
    await journal.commit(last, failed("the other"))
    await journal.commit(first, failed("the first"))

    error = (await journal.document(new.id)).error

    assert error is not None
    assert (error["code"], error["page"]) == ("document_failed", 4)
    assert error["detail"] == "no page could be read; page 4: replica_error: the first"


async def test_events_come_in_the_order_of_completion_and_end_once(journal: Journal) -> None:
    new = new_document(3)
    await journal.add_document(new)
    one, two, three = await journal.claim(3, PROFILES)
    for claim in (two, three, one):
        await journal.commit(claim, succeeded(f"page {claim.page}"))

    events = await journal.events(new.id)

    assert told(events) == [(1, "document", None), (2, "page", 2), (3, "page", 3), (4, "page", 1), (5, "end", None)]
    assert [event.page.outcome.text for event in events if event.page] == ["page 2", "page 3", "page 1"]
    assert [event.page.seq for event in events if event.page] == [2, 3, 4]
    assert (await journal.document(new.id)).seq == 5


async def test_events_resume_behind_any_of_them(journal: Journal) -> None:
    new = new_document(4)
    await journal.add_document(new)
    await read_all(journal)
    everything = await journal.events(new.id)
    assert len(everything) == 6

    for seq in range(7):
        assert await journal.events(new.id, after=seq) == everything[seq:]
        assert await journal.events(new.id, after=seq, limit=2) == everything[seq : seq + 2]


async def test_the_same_commit_counts_once(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)
    claim, _ = await journal.claim(2, PROFILES)

    together = await asyncio.gather(*[journal.commit(claim, succeeded()) for _ in range(4)])
    later = await journal.commit(claim, failed())

    assert sorted(together) == [False, False, False, True]
    assert not later
    assert told(await journal.events(new.id)) == [(1, "document", None), (2, "page", 1)]
    assert (await journal.document(new.id)).counts == Counts(total=2, running=1, succeeded=1)


async def hand_back(journal: Journal, claim: Claim) -> None:
    await journal.release(claim, attempts=0)


async def claim_anew(journal: Journal, claim: Claim) -> None:
    await journal.release(claim, attempts=0)
    await journal.claim(1, PROFILES)


async def cancel(journal: Journal, claim: Claim) -> None:
    await journal.cancel(claim.document_id)


async def delete(journal: Journal, claim: Claim) -> None:
    await journal.delete(claim.document_id)


@pytest.mark.parametrize("meanwhile", [hand_back, claim_anew, cancel, delete])
async def test_a_commit_under_a_void_claim_is_dropped(
    journal: Journal, meanwhile: Callable[[Journal, Claim], Awaitable[None]]
) -> None:
    new = new_document(1)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)
    await meanwhile(journal, claim)
    before = await journal.pages(new.id), await journal.events(new.id)

    assert not await journal.commit(claim, succeeded())

    assert (await journal.pages(new.id), await journal.events(new.id)) == before


async def test_a_void_commit_does_not_spoil_the_valid_one_beside_it(journal: Journal) -> None:
    new = new_document(1)
    await journal.add_document(new)
    (void,) = await journal.claim(1, PROFILES)
    await journal.release(void, attempts=0)
    (valid,) = await journal.claim(1, PROFILES)

    dropped, accepted = await asyncio.gather(journal.commit(void, failed()), journal.commit(valid, succeeded()))

    assert (dropped, accepted) == (False, True)
    assert (await journal.document(new.id)).state is DocumentState.SUCCEEDED


async def test_commits_at_the_same_time_are_all_counted(journal: Journal) -> None:
    documents = [new_document(25), new_document(25)]
    for new in documents:
        await journal.add_document(new)
    claims = await journal.claim(50, PROFILES)

    accepted = await asyncio.gather(
        *[journal.commit(claim, failed() if claim.page % 5 == 0 else succeeded()) for claim in claims]
    )

    assert all(accepted)
    for new in documents:
        document = await journal.document(new.id)
        assert document.counts == Counts(total=25, succeeded=20, failed=5)
        assert document.state is DocumentState.PARTIAL
        events = await journal.events(new.id)
        assert [event.seq for event in events] == list(range(1, 28))
        assert [event.kind.value for event in events] == ["document"] + ["page"] * 25 + ["end"]
        assert {event.page.number for event in events if event.page} == set(new.pages)


async def test_a_commit_that_nobody_waits_for_any_more_is_written(journal: Journal) -> None:
    new = new_document(1)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)
    commit = asyncio.create_task(journal.commit(claim, succeeded()))
    await asyncio.sleep(0)
    commit.cancel()

    with journal.changes.watch(new.id) as watch:
        assert await watch.changed(10)

    assert commit.cancelled()
    assert (await journal.document(new.id)).state is DocumentState.SUCCEEDED


async def test_whoever_watches_is_woken_when_the_event_can_be_read(journal: Journal) -> None:
    new = new_document(2)
    with journal.changes.watch(new.id) as watch:
        await journal.add_document(new)
        assert await watch.changed(10)
        claims = await journal.claim(2, PROFILES)
        for seen, claim in enumerate(claims, start=2):
            waiting = asyncio.create_task(watch.changed(10))
            await journal.commit(claim, succeeded())
            assert await waiting
            assert (await journal.document(new.id)).seq >= seen
        assert not await watch.changed(0)
