"""New documents."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Row, insert, select

from app.documents.records import Document, NewDocument
from app.documents.states import EventKind
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.locks import lock_tenant
from app.journal.queueing import QueueLimit, requeue
from app.journal.rows import document_of, document_values
from app.journal.tables import documents, events, pages, tenants

_PAGES_A_STATEMENT = 1000
"""The parameters of a statement are made in one go: about 5 ms of the interpreter for so many pages."""


class Admission:
    """Writes checked uploads into the journal."""

    def __init__(self, changes: Changes, limit: QueueLimit) -> None:
        self._changes = changes
        self._limit = limit

    def add(self, transaction: Transaction, new: NewDocument) -> Document:
        """The new document, or the one with its id, if it was added before. Raises `QueueFull`."""
        if added := transaction.one_or_none(select(documents).where(documents.c.id == new.id)):
            return document_of(added)
        self._limit.refuse_if_full(transaction, len(new.pages))
        transaction.insert_if_absent(tenants, {"name": new.tenant})
        document = self._insert(transaction, new)
        # Nobody sees the rows yet, so the tenant, whose lock others wait for, is locked last and for a moment only.
        tenant = lock_tenant(transaction, new.tenant)
        self._limit.refuse_if_full(transaction, len(new.pages))
        document = requeue(transaction, tenant, document, len(new.pages))
        transaction.after(lambda: self._changes.changed(new.id))
        transaction.after(self._changes.queued)
        return document_of(document)

    def _insert(self, transaction: Transaction, new: NewDocument) -> Row[Any]:
        """The document with its pages and its first event; in no queue yet."""
        now = transaction.now
        values = document_values(new, now)
        document = transaction.one(insert(documents).values(values).returning(*documents.c))
        for numbers in _chunks(new.pages, _PAGES_A_STATEMENT):
            transaction.run_many(
                insert(pages), [{"document_id": new.id, "number": number, "queued_at": now} for number in numbers]
            )
        transaction.run(insert(events).values(document_id=new.id, seq=document.seq, kind=EventKind.DOCUMENT))
        return document


def _chunks(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
