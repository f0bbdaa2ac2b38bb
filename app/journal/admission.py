"""New documents."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from sqlalchemy import insert

from app.documents.records import Document, NewDocument
from app.documents.states import EventKind
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.locks import lock_tenant
from app.journal.queueing import count_queued, document_pass, refuse_if_full
from app.journal.rows import document_of, document_values
from app.journal.tables import documents, events, pages
from app.telemetry.metrics import PAGES_QUEUED

_PAGES_A_STATEMENT = 1000
"""The parameters of a statement are made in one go: about 5 ms of the interpreter for so many pages."""


class Admission:
    """Writes checked uploads into the journal."""

    def __init__(self, changes: Changes, max_queued_pages: int) -> None:
        self._changes = changes
        self._max_queued_pages = max_queued_pages

    def add(self, transaction: Transaction, new: NewDocument) -> Document:
        """Raises `QueueFull`."""
        tenant = lock_tenant(transaction, new.tenant)
        refuse_if_full(transaction, len(new.pages), self._max_queued_pages)
        now = datetime.now(UTC)
        values = document_values(new, now) | {"pass_": document_pass(transaction, tenant, new.priority)}
        document = transaction.one(insert(documents).values(values).returning(*documents.c))
        for numbers in _chunks(new.pages, _PAGES_A_STATEMENT):
            transaction.run_many(
                insert(pages), [{"document_id": new.id, "number": number, "queued_at": now} for number in numbers]
            )
        transaction.run(insert(events).values(document_id=new.id, seq=document.seq, kind=EventKind.DOCUMENT))
        count_queued(transaction, tenant, len(new.pages))
        transaction.after(lambda: PAGES_QUEUED.inc(len(new.pages)))
        transaction.after(lambda: self._changes.changed(new.id))
        transaction.after(self._changes.queued)
        return document_of(document)


def _chunks(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
