"""Documents that their user cancels or deletes."""

from typing import Any

from sqlalchemy import Row, insert, update

from app.documents.records import Document
from app.documents.states import DocumentState, EventKind
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.locks import lock_owned
from app.journal.retention import erase
from app.journal.rows import count_values, counts_of, document_of, end_values
from app.journal.stops import cancel_rest
from app.journal.tables import documents, events
from app.telemetry.metrics import DOCUMENTS_ENDED


class Cancels:
    """Ends documents at once, whatever their pages are doing."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def cancel(self, transaction: Transaction, document_id: str, tenant: str | None) -> Document:
        """The document, cancelled now or as it had ended before; raises `NotFound` and `Gone`."""
        _, document = lock_owned(transaction, document_id, tenant)
        if not DocumentState(document.state).ended:
            document = self._stop(transaction, document)
        return document_of(document)

    def delete(self, transaction: Transaction, document_id: str, tenant: str | None) -> str:
        """Erase the document with its password, text and events; its blob key. Raises `NotFound` and `Gone`."""
        _, document = lock_owned(transaction, document_id, tenant)
        if not DocumentState(document.state).ended:
            self._stop(transaction, document)
        erase(transaction, self._changes, [document_id])
        return str(document.blob_key)

    def _stop(self, transaction: Transaction, document: Row[Any]) -> Row[Any]:
        now = transaction.now
        cancel_rest(transaction, self._changes, document, now)
        transaction.run(insert(events).values(document_id=document.id, seq=document.seq + 1, kind=EventKind.END))
        transaction.after(DOCUMENTS_ENDED.labels(DocumentState.CANCELLED).inc)
        transaction.after(lambda: self._changes.changed(document.id))
        return transaction.one(
            update(documents)
            .where(documents.c.id == document.id)
            .values(
                seq=document.seq + 1,
                **count_values(counts_of(document).stopped()),
                **end_values(document, DocumentState.CANCELLED, now),
            )
            .returning(*documents.c)
        )
