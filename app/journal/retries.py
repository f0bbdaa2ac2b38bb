"""Documents whose failed pages are tried again."""

from typing import Any

from sqlalchemy import Row, delete, or_, select, update

from app.documents.records import Document, PageOutcome
from app.documents.states import DocumentState, EventKind, PageState
from app.errors import NotRetryable
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.locks import lock_owned
from app.journal.queueing import QUEUED_AGAIN, QueueLimit, requeue
from app.journal.rows import document_of, outcome_values
from app.journal.tables import EPOCH, events, pages

_UNREAD = outcome_values(PageOutcome(PageState.QUEUED))


class Retries:
    """Puts back into the queue what ended unread, if its user did not want that."""

    def __init__(self, changes: Changes, limit: QueueLimit) -> None:
        self._changes = changes
        self._limit = limit

    def retry(self, transaction: Transaction, document_id: str, tenant: str | None) -> Document:
        """The document, queued again if it had ended. Raises `NotFound`, `Gone`, `NotRetryable`, `QueueFull`.

        The events of its failed pages and its end are taken back while `seq` goes on, so that any replay has each page
        once, and one end, last.
        """
        tenant_row, document = lock_owned(transaction, document_id, tenant)
        count = _count(document)
        self._limit.refuse_if_full(transaction, count)
        _take_events_back(transaction, document_id)
        _queue_pages(transaction, document_id)
        row = requeue(
            transaction,
            tenant_row,
            document,
            count,
            state=DocumentState.QUEUED if DocumentState(document.state).ended else document.state,
            pages_failed=0,
            pages_cancelled=0,
            retries=document.retries + 1,
            ended_at=None,
            expires_at=None,
            error=None,
        )
        transaction.after(lambda: self._changes.changed(document_id))
        transaction.after(self._changes.queued)
        return document_of(row)


def _count(document: Row[Any]) -> int:
    """Pages to try again: where the user did not cancel, pages were cancelled because another had failed."""
    if document.state == DocumentState.CANCELLED:
        raise NotRetryable("the document was cancelled by its user")
    count: int = document.pages_failed + document.pages_cancelled
    if count == 0:
        raise NotRetryable("no page of the document has failed")
    return count


def _take_events_back(transaction: Transaction, document_id: str) -> None:
    failed = select(pages.c.number).where(pages.c.document_id == document_id, pages.c.state == PageState.FAILED)
    transaction.run(
        delete(events).where(
            events.c.document_id == document_id, or_(events.c.kind == EventKind.END, events.c.page.in_(failed))
        )
    )


def _queue_pages(transaction: Transaction, document_id: str) -> None:
    transaction.run(
        update(pages)
        .where(pages.c.document_id == document_id, pages.c.state.in_([PageState.FAILED, PageState.CANCELLED]))
        .values(
            _UNREAD | QUEUED_AGAIN | {"queued_at": transaction.now, "not_before": EPOCH, "seq": None, "ended_at": None}
        )
    )
