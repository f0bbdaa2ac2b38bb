"""Whose turn it is: the documents that a claim serves, in stride order."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, exists, or_, select

from app.documents.fairness import TENANT_STRIDE, stride
from app.journal.database import Transaction
from app.journal.stride_queue import Entry, StrideQueue
from app.journal.tables import DOCUMENT_HAS_QUEUED, TENANT_HAS_QUEUED, documents, is_queued, pages, tenants

_DOCUMENT_COLUMNS = (
    documents.c.id,
    documents.c.tenant,
    documents.c.pass_,
    documents.c.priority,
    documents.c.profile,
    documents.c.blob_key,
    documents.c.password,
    documents.c.media_type,
    documents.c.on_page_error,
    documents.c.started_at,
    documents.c.pages_queued,
    documents.c.pages_running,
)


def claimable(profiles: Sequence[str], without: Collection[str], now: datetime) -> ColumnElement[bool]:
    """Condition on a document: of one of the profiles or none yet, and with a page that may be claimed now."""
    return and_(
        DOCUMENT_HAS_QUEUED,
        or_(documents.c.profile.is_(None), documents.c.profile.in_(profiles)),
        documents.c.id.not_in(without),
        exists().where(pages.c.document_id == documents.c.id, is_queued(pages), pages.c.not_before <= now),
    )


def lock_tenants(transaction: Transaction, condition: ColumnElement[bool], limit: int) -> Sequence[Row[Any]]:
    """The `limit` tenants of the smallest passes that have a document which fulfils `condition`."""
    # Ordered, although any would do: so SQLite reads the index of claimable documents, not all that ever were.
    any_document = (
        select(documents.c.id)
        .where(documents.c.tenant == tenants.c.name, condition)
        .order_by(documents.c.pass_)
        .limit(1)
        .scalar_subquery()
    )
    return transaction.rows(
        select(tenants)
        .where(TENANT_HAS_QUEUED, any_document.is_not(None))
        .order_by(tenants.c.pass_, tenants.c.name)
        .limit(limit)
        .with_for_update(key_share=True)
    )


def lock_turns(
    transaction: Transaction, tenant_rows: Iterable[Row[Any]], condition: ColumnElement[bool], limit: int
) -> list[Row[Any]]:
    """Documents that fulfil `condition`, one entry for each of the next `limit` pages, in the order of service."""
    turns: list[Row[Any]] = []
    rows: dict[str, Row[Any]] = {}
    queues: dict[str, StrideQueue] = {}
    order = StrideQueue(Entry(row.pass_, row.name, TENANT_STRIDE, row.pages_queued) for row in tenant_rows)
    while order and len(turns) < limit:
        tenant = order.first
        if tenant not in queues:
            found = _lock_documents(transaction, tenant, condition, limit - len(turns))
            rows |= {row.id: row for row in found}
            queues[tenant] = StrideQueue(
                Entry(row.pass_, row.id, stride(row.priority), row.pages_queued) for row in found
            )
        if queues[tenant]:
            turns.append(rows[queues[tenant].serve()])
            order.serve()
        else:
            order.drop()
    return turns


def _lock_documents(
    transaction: Transaction, tenant: str, condition: ColumnElement[bool], limit: int
) -> Sequence[Row[Any]]:
    return transaction.rows(
        select(*_DOCUMENT_COLUMNS)
        .where(documents.c.tenant == tenant, condition)
        .order_by(documents.c.pass_, documents.c.id)
        .limit(limit)
        .with_for_update(key_share=True)
    )
