"""Claims: fair order, hand-back, and what may be claimed at all."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from app.documents.records import Claim
from app.documents.states import DocumentState, OnPageError, PageState
from app.journal import Journal
from tests.journals import PROFILES, new_document, succeeded
from tests.waiting import until


def owners(claims: Sequence[Claim]) -> list[str]:
    return [claim.tenant for claim in claims]


async def claim_singly(journal: Journal, count: int) -> list[Claim]:
    return [claim for _ in range(count) for claim in await journal.claim(1, PROFILES)]


async def test_a_claim_carries_what_the_work_needs(journal: Journal) -> None:
    new = new_document([3], password="secret", priority=1, profile="cpu", on_page_error=OnPageError.FAIL)
    document = await journal.add_document(new)

    (claim,) = await journal.claim(5, PROFILES)

    assert claim.key == (new.id, 3)
    assert (claim.tenant, claim.profile, claim.priority) == ("default", "cpu", 1)
    assert (claim.blob_key, claim.password, claim.media_type) == (new.blob_key, "secret", "application/pdf")
    assert (claim.number, claim.attempts, claim.lane_deaths) == (1, 0, 0)
    assert claim.on_page_error is OnPageError.FAIL
    assert claim.queued_at == document.created_at


async def test_the_first_claim_starts_the_document(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)

    await journal.claim(1, PROFILES)

    document = await journal.document(new.id)
    assert document.state is DocumentState.RUNNING
    assert (document.counts.queued, document.counts.running) == (1, 1)
    assert document.started_at is not None
    await journal.claim(1, PROFILES)
    assert (await journal.document(new.id)).started_at == document.started_at


async def test_pages_are_claimed_by_number_and_each_once(journal: Journal) -> None:
    await journal.add_document(new_document(5))

    claims = await journal.claim(3, PROFILES) + await journal.claim(10, PROFILES)

    assert [claim.page for claim in claims] == [1, 2, 3, 4, 5]
    assert await journal.claim(10, PROFILES) == []


async def test_tenants_take_turns_whatever_they_have_queued(journal: Journal) -> None:
    for _ in range(3):
        await journal.add_document(new_document(20, tenant="large"))
    await journal.add_document(new_document(3, tenant="small"))

    assert owners(await journal.claim(8, PROFILES)) == ["large", *["large", "small"] * 3, "large"]


async def test_one_batch_has_the_order_of_single_claims(journal: Journal) -> None:
    documents = [
        new_document(9, tenant="one", priority=3),
        new_document(9, tenant="one", priority=2),
        new_document(9, tenant="one", priority=5),
        new_document(4, tenant="two", priority=7),
        new_document(9, tenant="two", priority=0),
    ]
    for document in documents:
        await journal.add_document(document)
    singles = [claim.key for claim in await claim_singly(journal, 25)]
    for document in documents:
        await journal.delete(document.id)
    for document in documents:  # the passes have moved on alike, so the order is the same again
        await journal.add_document(document)

    assert [claim.key for claim in await journal.claim(25, PROFILES)] == singles


async def test_priority_two_gets_twice_the_pages_of_priority_three(journal: Journal) -> None:
    urgent, normal = new_document(100, priority=2), new_document(100, priority=3)
    await journal.add_document(normal)
    await journal.add_document(urgent)

    served = Counter(claim.document_id for claim in await journal.claim(60, PROFILES))

    assert served == {urgent.id: 40, normal.id: 20}


async def test_a_newcomer_waits_for_about_one_page(journal: Journal) -> None:
    await journal.add_document(new_document(1000))
    await journal.claim(500, PROFILES)
    newcomer = new_document(1)
    await journal.add_document(newcomer)

    assert newcomer.id in {claim.document_id for claim in await journal.claim(3, PROFILES)}


async def test_a_newcomer_does_not_overtake_for_long(journal: Journal) -> None:
    early = new_document(200)
    await journal.add_document(early)
    await journal.claim(100, PROFILES)
    await journal.add_document(new_document(200))

    served = Counter(claim.document_id for claim in await journal.claim(20, PROFILES))

    assert 9 <= served[early.id] <= 11


async def test_a_tenant_that_comes_back_neither_starves_nor_is_starved(journal: Journal) -> None:
    await journal.add_document(new_document(1, tenant="idle"))
    await journal.claim(1, PROFILES)
    await journal.add_document(new_document(300, tenant="busy"))
    await journal.claim(100, PROFILES)

    await journal.add_document(new_document(50, tenant="idle"))

    assert 9 <= Counter(owners(await journal.claim(20, PROFILES)))["idle"] <= 11


async def test_a_new_tenant_on_an_idle_service_starts_where_the_others_stand(journal: Journal) -> None:
    await journal.add_document(new_document(100, tenant="first"))
    await journal.claim(100, PROFILES)
    await journal.add_document(new_document(100, tenant="second"))
    await journal.claim(1, PROFILES)

    await journal.add_document(new_document(100, tenant="first"))

    assert Counter(owners(await journal.claim(20, PROFILES))) == {"first": 10, "second": 10}


async def test_pages_handed_back_do_not_wait_for_a_newer_document_to_catch_up(journal: Journal) -> None:
    early, late = new_document(100), new_document(100)
    await journal.add_document(early)
    claims = await journal.claim(100, PROFILES)
    await journal.add_document(late)

    for claim in claims[:20]:
        await journal.release(claim, attempts=0)

    assert Counter(claim.document_id for claim in await journal.claim(20, PROFILES)) == {early.id: 10, late.id: 10}


async def test_pages_handed_back_do_not_overtake_for_long(journal: Journal) -> None:
    early, late = new_document(10), new_document(400)
    await journal.add_document(early)
    claims = await journal.claim(10, PROFILES)
    await journal.add_document(late)
    await journal.claim(300, PROFILES)

    for claim in claims:
        await journal.release(claim, attempts=0)

    assert Counter(claim.document_id for claim in await journal.claim(10, PROFILES)) == {early.id: 5, late.id: 5}


async def test_documents_to_be_passed_over_are(journal: Journal) -> None:
    passed, taken = new_document(5), new_document(5)
    await journal.add_document(passed)
    await journal.add_document(taken)

    claims = await journal.claim(10, PROFILES, without={passed.id})

    assert {claim.document_id for claim in claims} == {taken.id}
    assert len(claims) == 5


async def test_a_tenant_with_nothing_to_give_does_not_hide_the_next(journal: Journal) -> None:
    hidden = new_document(5, tenant="a")
    await journal.add_document(hidden)
    await journal.add_document(new_document(5, tenant="b"))

    assert owners(await journal.claim(1, PROFILES, without=[hidden.id])) == ["b"]


async def test_a_page_handed_back_is_claimed_again_with_its_attempts(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)
    first, _ = await journal.claim(2, PROFILES)

    assert await journal.release(first, attempts=2)

    counts = (await journal.document(new.id)).counts
    assert (counts.queued, counts.running) == (1, 1)
    (again,) = await journal.claim(10, PROFILES)
    assert (again.key, again.attempts) == (first.key, 2)
    assert again.number > first.number
    assert again.queued_at > first.queued_at


async def test_a_claim_is_handed_back_once(journal: Journal) -> None:
    new = new_document(1)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)

    assert await journal.release(claim, attempts=0)
    assert not await journal.release(claim, attempts=0)
    assert (await journal.document(new.id)).counts.queued == 1
    await journal.claim(1, PROFILES)
    assert not await journal.release(claim, attempts=0)
    assert (await journal.document(new.id)).counts.running == 1


async def test_a_claim_that_is_handed_back_twice_at_once_counts_once(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)

    await asyncio.gather(*[journal.release(claim, attempts=0) for _ in range(3)])

    counts = (await journal.document(new.id)).counts
    assert (counts.queued, counts.running, await journal.queue_depth()) == (2, 0, 2)


async def test_pages_of_many_documents_are_handed_back_together(journal: Journal) -> None:
    """Whose tenants are the same and are not."""
    news = [new_document(2, tenant=f"tenant{number % 2}") for number in range(6)]
    for new in news:
        await journal.add_document(new)
    claims = await journal.claim(12, PROFILES)

    assert all(await asyncio.gather(*[journal.release(claim, attempts=0) for claim in claims[:9]]))

    assert await journal.queue_depth() == 9
    assert len(await journal.claim(12, PROFILES)) == 9


async def test_a_page_handed_back_for_later_is_not_due_before(journal: Journal) -> None:
    new = new_document(2)
    await journal.add_document(new)
    first, second = await journal.claim(2, PROFILES)
    due = asyncio.Event()
    journal.changes.on_queued(due.set)

    await journal.release(first, attempts=0, not_before_seconds=0.3)
    await journal.release(second, attempts=0, not_before_seconds=30)

    assert await journal.claim(10, PROFILES) == []
    async with asyncio.timeout(10):
        await due.wait()  # told again when the page is due
    assert [claim.page for claim in await journal.claim(10, PROFILES)] == [1]


async def test_pages_not_due_do_not_hold_up_those_that_are(journal: Journal) -> None:
    waiting = new_document(3)
    await journal.add_document(waiting)
    for claim in await journal.claim(2, PROFILES):
        await journal.release(claim, attempts=0, not_before_seconds=30)
    await journal.add_document(new_document(2))

    claims = await journal.claim(10, PROFILES) + await journal.claim(10, PROFILES)

    assert sorted(claim.page for claim in claims) == [1, 2, 3]
    assert await journal.claim(10, PROFILES) == []


async def test_a_document_without_a_page_due_takes_no_turn(journal: Journal) -> None:
    waiting, ready = new_document(1), new_document(1)
    await journal.add_document(waiting)
    (claim,) = await journal.claim(1, PROFILES)
    await journal.release(claim, attempts=0, not_before_seconds=30)
    await journal.add_document(ready)

    assert [claim.document_id for claim in await journal.claim(1, PROFILES)] == [ready.id]


async def test_many_claimers_share_the_pages_without_overlap(journal: Journal) -> None:
    for _ in range(5):
        await journal.add_document(new_document(20))

    batches = await asyncio.gather(*[journal.claim(7, PROFILES) for _ in range(20)])

    keys = [claim.key for batch in batches for claim in batch]
    assert len(keys) == len(set(keys)) == 100


async def test_who_waits_for_pages_is_told_of_them(journal: Journal) -> None:
    calls: list[None] = []
    journal.changes.on_queued(lambda: calls.append(None))

    await journal.add_document(new_document(1))
    assert calls
    (claim,) = await journal.claim(1, PROFILES)
    calls.clear()
    await journal.release(claim, attempts=0)
    await until(lambda: bool(calls))


async def test_a_page_being_read_shows_as_running(journal: Journal) -> None:
    new = new_document(1)
    await journal.add_document(new)
    (claim,) = await journal.claim(1, PROFILES)
    assert (await journal.pages(new.id))[0].state is PageState.RUNNING
    await journal.release(claim, attempts=1)
    (page,) = await journal.pages(new.id)
    assert (page.state, page.outcome.attempts) == (PageState.QUEUED, 1)
    (claim,) = await journal.claim(1, PROFILES)
    assert await journal.commit(claim, succeeded())
