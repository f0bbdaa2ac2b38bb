"""Dispatch order, played out on the queue alone: every `serve` is a lane that takes the next page."""

from collections import Counter
from datetime import UTC, datetime

from app.documents.records import Claim
from app.worker.fair_queue import FairQueue


def claim(document: str, page: int, *, tenant: str = "default", priority: int = 3) -> Claim:
    return Claim(
        document_id=document,
        tenant=tenant,
        page=page,
        number=1,
        profile="cpu",
        priority=priority,
        blob_key="",
        password=None,
        attempts=0,
        lane_deaths=0,
        queued_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def push(queue: FairQueue[Claim], *claims: Claim) -> None:
    for one in claims:
        queue.push(one, one)


def serve(queue: FairQueue[Claim], count: int = 1) -> list[tuple[str, int]]:
    served = []
    for _ in range(count):
        first = next(queue.in_order())
        served.append(queue.serve(first).key)
    return served


def test_pages_of_a_document_go_by_number() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, claim("a", 3), claim("a", 1), claim("a", 2))
    assert serve(queue, 3) == [("a", 1), ("a", 2), ("a", 3)]
    assert len(queue) == 0


def test_a_newcomer_is_next_however_much_waits() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, *(claim("big", page) for page in range(1, 50)))
    serve(queue, 20)
    push(queue, claim("small", 1))
    assert serve(queue) == [("small", 1)]


def test_who_was_overtaken_goes_before_the_next_newcomers() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, *(claim("big", page) for page in range(1, 50)))
    serve(queue, 5)
    push(queue, claim("first", 1))
    assert serve(queue) == [("first", 1)]
    push(queue, claim("second", 1), claim("third", 1))
    assert serve(queue) == [("big", 6)]


def test_a_stream_of_newcomers_does_not_starve_who_waits() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, *(claim("big", page) for page in range(1, 50)))
    served = []
    for arrival in range(20):
        push(queue, claim(f"new{arrival}", 1), claim(f"newer{arrival}", 1))
        served += serve(queue, 2)
    assert sum(document == "big" for document, _ in served) >= 6


def test_priority_counts_among_documents_of_one_page() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, *(claim(f"slow{number}", 1, priority=7) for number in range(20)))
    push(queue, claim("urgent", 1, priority=0))
    served = [document for document, _ in serve(queue, 3)]
    assert "urgent" in served


def test_priority_is_weight() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, *(claim("urgent", page, priority=2) for page in range(1, 100)))
    push(queue, *(claim("usual", page, priority=3) for page in range(1, 100)))
    shares = Counter(document for document, _ in serve(queue, 60))
    assert 38 <= shares["urgent"] <= 42


def test_tenants_share_whatever_the_number_of_their_documents() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, *(claim(f"many{number}", 1, tenant="many") for number in range(50)))
    push(queue, *(claim("one", page, tenant="one") for page in range(1, 50)))
    shares = Counter(document == "one" for document, _ in serve(queue, 40))
    assert 19 <= shares[True] <= 21


def test_a_document_without_waiting_pages_keeps_what_it_owes() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, claim("a", 1, priority=7), claim("b", 1), claim("b", 2), claim("b", 3))
    assert serve(queue, 2) == [("b", 1), ("a", 1)]
    push(queue, claim("a", 2, priority=7))
    assert serve(queue, 3) == [("b", 2), ("b", 3), ("a", 2)]


def test_a_document_that_has_one_page_waiting_at_a_time_keeps_its_share() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, *(claim("slow", page, priority=7) for page in range(1, 50)))
    served = []
    for page in range(1, 21):
        push(queue, claim("urgent", page, priority=0))
        served += serve(queue)
    assert sum(document == "urgent" for document, _ in served) >= 19


def test_nothing_is_remembered_of_a_document_that_is_forgotten() -> None:
    queue: FairQueue[Claim] = FairQueue()
    push(queue, claim("a", 1), claim("b", 1, tenant="other"))
    serve(queue, 2)
    queue.forget(claim("a", 1))
    queue.forget(claim("b", 1, tenant="other"))
    assert queue._tenants == {}


def test_a_discarded_page_is_passed_over() -> None:
    queue: FairQueue[Claim] = FairQueue()
    first, gone = claim("a", 1), claim("gone", 1)
    push(queue, first, claim("a", 2))
    queue.discard(first, first)
    queue.discard(gone, gone)
    assert serve(queue) == [("a", 2)]


def test_a_late_discard_leaves_the_page_of_a_later_claim() -> None:
    queue: FairQueue[str] = FairQueue()
    page = claim("a", 1)
    queue.push(page, "first claim")
    queue.push(page, "second claim")
    queue.discard(page, "first claim")
    assert list(queue.in_order()) == ["second claim"]
