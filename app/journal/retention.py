"""Documents that are erased: by their user, or when their time to live is over."""

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, delete, insert, select

from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.idempotency import forget_expired
from app.journal.tables import documents, events, pages, tombstones

TOMBSTONE_TIME = timedelta(days=7)
"""How long a document that was swept is told from one that never was."""
_MAX_PAGES = 2_000
"""Bounds how long one sweep holds the writer: about 30 µs a page."""


def erase(transaction: Transaction, changes: Changes, ids: Collection[str]) -> None:
    """Erase locked documents with their passwords, pages and events."""
    transaction.run(delete(events).where(events.c.document_id.in_(ids)))
    transaction.run(delete(pages).where(pages.c.document_id.in_(ids)))
    transaction.run(delete(documents).where(documents.c.id.in_(ids)))

    def announce() -> None:
        for document_id in ids:
            changes.changed(document_id)

    transaction.after(announce)


def sweep(transaction: Transaction, changes: Changes, limit: int) -> list[str]:
    """Erase at most `limit` documents whose time is over, the longest first; the keys of their blobs.

    Fewer where they have many pages. A tombstone takes the place of each; those whose time is over are removed.
    """
    now = transaction.now
    transaction.run(delete(tombstones).where(tombstones.c.expires_at <= now))
    forget_expired(transaction)
    expired = transaction.rows(
        select(documents.c.id, documents.c.tenant, documents.c.blob_key, documents.c.pages_total)
        .where(documents.c.expires_at <= now)
        .order_by(documents.c.expires_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    swept = list(_first_with_pages(expired, _MAX_PAGES))
    transaction.run_many(
        insert(tombstones),
        [{"document_id": row.id, "tenant": row.tenant, "expires_at": now + TOMBSTONE_TIME} for row in swept],
    )
    erase(transaction, changes, [row.id for row in swept])
    return [row.blob_key for row in swept]


def _first_with_pages(rows: Iterable[Row[Any]], max_pages: int) -> Iterator[Row[Any]]:
    """The first of `rows`, and those behind it as long as all together have at most `max_pages` pages."""
    total = 0
    for row in rows:
        if total and total + row.pages_total > max_pages:
            return
        total += row.pages_total
        yield row
