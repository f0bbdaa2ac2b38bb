"""Documents that stop before all their pages have ended."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row, update

from app.documents.states import PageState
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.tables import pages, tenants
from app.telemetry.metrics import PAGES_ENDED


def cancel_rest(transaction: Transaction, changes: Changes, document: Row[Any], now: datetime) -> None:
    """Cancel the pages that have not ended, of a document locked after its tenant; its row is left to the caller.

    They leave their tenant's queue, and who works on them is told to stop.
    """
    cancelled = transaction.run(
        update(pages)
        .where(pages.c.document_id == document.id, pages.c.state.in_([PageState.QUEUED, PageState.RUNNING]))
        .values(
            state=PageState.CANCELLED,
            claim_number=pages.c.claim_number + 1,
            claim_owner=None,
            ended_at=now,
        )
    )
    transaction.run(
        update(tenants)
        .where(tenants.c.name == document.tenant)
        .values(pages_queued=tenants.c.pages_queued - document.pages_queued)
    )

    def announce() -> None:
        PAGES_ENDED.labels(PageState.CANCELLED, "").inc(cancelled)
        changes.cancelled(document.id)

    transaction.after(announce)
