"""Pages that end: page, counters and events in one transaction, many pages at a time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, insert, select, update

from app.documents.records import Claim, Counts, PageOutcome
from app.documents.states import DocumentState, EventKind, OnPageError, PageState
from app.errors import DocumentFailed, Problem
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.locks import Fence, lock_claimed, lock_documents, lock_tenants
from app.journal.rows import count_values, counts_of, end_values, outcome_values
from app.journal.stops import cancel_rest
from app.journal.tables import documents, events, pages
from app.telemetry.metrics import DOCUMENTS_ENDED, PAGES_ENDED

Commit = tuple[Claim, PageOutcome]

_END_PAGE = update(pages).where(
    pages.c.document_id == bindparam("key_document"), pages.c.number == bindparam("key_number")
)
_MOVE_DOCUMENT = update(documents).where(documents.c.id == bindparam("key"))


@dataclass(frozen=True, slots=True)
class _Step:
    """What a group of commits does to one document."""

    row: Row[Any]
    commits: list[Commit] = field(default_factory=list)

    @property
    def stops(self) -> bool:
        """Whether a page's error ends the document; the other pages of the group are kept as they are."""
        return any(_stops(commit) for commit in self.commits)

    @property
    def counts(self) -> Counts:
        before = counts_of(self.row)
        ended = Counter(outcome.state for _, outcome in self.commits)
        after = replace(
            before,
            running=before.running - len(self.commits),
            succeeded=before.succeeded + ended[PageState.SUCCEEDED],
            failed=before.failed + ended[PageState.FAILED],
        )
        return after.stopped() if self.stops else after

    @property
    def state(self) -> DocumentState:
        if self.stops:
            return DocumentState.FAILED
        counts = self.counts
        return counts.final_state() if counts.ended == counts.total else DocumentState(self.row.state)

    @property
    def numbered(self) -> Iterable[tuple[int, Commit]]:
        """The commits, each with the number of its event."""
        return enumerate(self.commits, start=self.row.seq + 1)

    @property
    def events(self) -> list[dict[str, Any]]:
        told = [_event(self.row.id, seq, EventKind.PAGE, claim.page) for seq, (claim, _) in self.numbered]
        end = [_event(self.row.id, self.row.seq + len(told) + 1, EventKind.END)] if self.state.ended else []
        return told + end

    def values(self, error: Problem | None, now: datetime) -> dict[str, Any]:
        """New values of the document's row."""
        state = self.state
        kept = {"state": state, "ended_at": None, "expires_at": None}
        return {
            "key": self.row.id,
            **count_values(self.counts),
            "seq": self.row.seq + len(self.events),
            "error": error,
            **(end_values(self.row, state, now) if state.ended else kept),
        }


def _stops(commit: Commit) -> bool:
    claim, outcome = commit
    return claim.on_page_error is OnPageError.FAIL and outcome.state is PageState.FAILED


def _event(document_id: str, seq: int, kind: EventKind, page: int | None = None) -> dict[str, Any]:
    return {"document_id": document_id, "seq": seq, "kind": kind, "page": page}


class Commits:
    """Ends pages that one gateway, `owner`, has claimed."""

    def __init__(self, changes: Changes, owner: str) -> None:
        self._changes = changes
        self._owner = owner

    def commit(self, transaction: Transaction, group: Sequence[Commit]) -> list[bool]:
        """Whether each commit ended its page; one whose claim is void is dropped.

        Locks documents, then pages; before them the tenants whose pages may be cancelled.
        """
        now = transaction.now
        if stopping := {commit[0].tenant for commit in group if _stops(commit)}:
            lock_tenants(transaction, stopping)
        by_id = {row.id: _Step(row) for row in lock_documents(transaction, {claim.document_id for claim, _ in group})}
        fences = lock_claimed(transaction, self._owner, {claim.key for claim, _ in group})
        accepted = [_accept(commit, by_id, fences) for commit in group]
        steps = [step for step in by_id.values() if step.commits]
        _end_pages(transaction, steps, now)
        for step in steps:
            if step.stops:
                cancel_rest(transaction, self._changes, step.row, now)
        errors = [_error(transaction, step) for step in steps]
        transaction.run_many(
            _MOVE_DOCUMENT, [step.values(error, now) for step, error in zip(steps, errors, strict=True)]
        )
        transaction.run_many(insert(events), [event for step in steps for event in step.events])
        transaction.after(lambda: self._announce(steps))
        return accepted

    def _announce(self, steps: Iterable[_Step]) -> None:
        for step in steps:
            for _, outcome in step.commits:
                PAGES_ENDED.labels(outcome.state, outcome.error["code"] if outcome.error else "").inc()
            if step.state.ended:
                DOCUMENTS_ENDED.labels(step.state).inc()
            self._changes.changed(step.row.id)


def _accept(commit: Commit, steps: dict[str, _Step], fences: set[Fence]) -> bool:
    claim, _ = commit
    if claim.fence not in fences:
        return False
    fences.remove(claim.fence)  # a group may hold the same commit twice
    steps[claim.document_id].commits.append(commit)
    return True


def _end_pages(transaction: Transaction, steps: Iterable[_Step], now: datetime) -> None:
    transaction.run_many(
        _END_PAGE,
        [
            {
                "key_document": claim.document_id,
                "key_number": claim.page,
                "claim_number": claim.number + 1,
                "claim_owner": None,
                "seq": seq,
                "ended_at": now,
                **outcome_values(outcome),
            }
            for step in steps
            for seq, (claim, outcome) in step.numbered
        ],
    )


def _error(transaction: Transaction, step: _Step) -> Problem | None:
    """Error of a document that has failed: it names the first page's."""
    if step.state is not DocumentState.FAILED:
        return None
    page = transaction.one(
        select(pages.c.number, pages.c.error)
        .where(pages.c.document_id == step.row.id, pages.c.state == PageState.FAILED)
        .order_by(pages.c.number)
        .limit(1)
    )
    cause = page.error or {}
    what = "a page's error stopped the document" if step.stops else "no page could be read"
    detail = f"{what}; page {page.number}: {cause.get('code')}: {cause.get('detail')}"
    return DocumentFailed(detail, page=page.number).problem()
