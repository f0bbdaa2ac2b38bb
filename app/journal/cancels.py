"""Documents that their user cancels or deletes."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from app.documents.records import Document
from app.documents.states import DocumentState, EventKind, PageState
from app.errors import NotFound
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.queueing import lock_document, lock_tenant
from app.journal.rows import document_of, end_values
from app.journal.tables import documents, events, pages, tenants
from app.telemetry.metrics import DOCUMENTS_ENDED, PAGES_ENDED, PAGES_QUEUED


class Cancels:
    """Ends documents at once, whatever their pages are doing."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes

    def cancel(self, transaction: Transaction, document_id: str, tenant: str | None) -> Document:
        """The document, cancelled now or as it had ended before; raises `NotFound`."""
        tenant_row, document = _locked(transaction, document_id, tenant)
        if not DocumentState(document.state).ended:
            document = self._stop(transaction, tenant_row, document)
        return document_of(document)

    def delete(self, transaction: Transaction, document_id: str, tenant: str | None) -> str:
        """Erase the document with its password, text and events; its blob key. Raises `NotFound`."""
        tenant_row, document = _locked(transaction, document_id, tenant)
        if not DocumentState(document.state).ended:
            self._stop(transaction, tenant_row, document)
        transaction.run(delete(events).where(events.c.document_id == document_id))
        transaction.run(delete(pages).where(pages.c.document_id == document_id))
        transaction.run(delete(documents).where(documents.c.id == document_id))
        transaction.after(lambda: self._changes.changed(document_id))
        return str(document.blob_key)

    def _stop(self, transaction: Transaction, tenant: Row[Any], document: Row[Any]) -> Row[Any]:
        now = datetime.now(UTC)
        unended = document.pages_queued + document.pages_running
        transaction.run(
            update(pages)
            .where(pages.c.document_id == document.id, pages.c.state.in_([PageState.QUEUED, PageState.RUNNING]))
            .values(
                state=PageState.CANCELLED,
                claim_number=pages.c.claim_number + 1,
                claim_owner=None,
                claim_expires_at=None,
                ended_at=now,
            )
        )
        transaction.run(
            update(tenants)
            .where(tenants.c.name == tenant.name)
            .values(pages_queued=tenant.pages_queued - document.pages_queued)
        )
        transaction.run(insert(events).values(document_id=document.id, seq=document.seq + 1, kind=EventKind.END))
        transaction.after(self._announcement(document.id, document.pages_queued, unended))
        return transaction.one(
            update(documents)
            .where(documents.c.id == document.id)
            .values(
                pages_queued=0,
                pages_running=0,
                pages_cancelled=document.pages_cancelled + unended,
                seq=document.seq + 1,
                **end_values(document, DocumentState.CANCELLED, now),
            )
            .returning(*documents.c)
        )

    def _announcement(self, document_id: str, queued: int, unended: int) -> Callable[[], None]:
        def announce() -> None:
            PAGES_QUEUED.dec(queued)
            PAGES_ENDED.labels(PageState.CANCELLED, "").inc(unended)
            DOCUMENTS_ENDED.labels(DocumentState.CANCELLED).inc()
            self._changes.cancelled(document_id)
            self._changes.changed(document_id)

        return announce


def _locked(transaction: Transaction, document_id: str, tenant: str | None) -> tuple[Row[Any], Row[Any]]:
    """The rows of the tenant and of the document, locked in this order."""
    owner = transaction.scalar(select(documents.c.tenant).where(documents.c.id == document_id))
    if owner is None or tenant not in (None, owner):
        raise NotFound("there is no such document")
    tenant_row = lock_tenant(transaction, owner)
    document = lock_document(transaction, document_id)
    if document is None:
        raise NotFound("there is no such document")
    return tenant_row, document
