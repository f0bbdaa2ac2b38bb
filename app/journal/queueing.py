"""Pages that become claimable: whether there is room, and at which pass their tenant and document join the queue."""

from typing import Any

from sqlalchemy import Row, func, select, update

from app.documents.drain_rate import seconds_to_drain
from app.documents.fairness import TENANT_STRIDE, joining_pass, stride
from app.documents.states import PageState
from app.errors import QueueFull
from app.journal.database import Transaction
from app.journal.peers import Peers
from app.journal.tables import DOCUMENT_HAS_QUEUED, TENANT_HAS_QUEUED, documents, pages, tenants

QUEUE_DEPTH = select(func.coalesce(func.sum(tenants.c.pages_queued), 0)).where(TENANT_HAS_QUEUED)
QUEUED_AGAIN = {
    "state": PageState.QUEUED,
    "claim_number": pages.c.claim_number + 1,
    "claim_owner": None,
}
"""Columns of a page that goes back into the queue."""


class QueueLimit:
    """How many pages may wait to be read."""

    def __init__(self, max_pages: int, peers: Peers) -> None:
        self._max_pages = max_pages
        self._peers = peers

    def refuse_if_full(self, transaction: Transaction, count: int) -> None:
        """Raises `QueueFull`, with the time until there will be room, where `count` more pages are too many."""
        excess = transaction.scalar(QUEUE_DEPTH) + count - self._max_pages
        if excess > 0:
            seconds = seconds_to_drain(excess, self._peers.pages_per_second)
            raise QueueFull(limit=self._max_pages, retry_after=seconds)


def count_queued(transaction: Transaction, tenant: Row[Any], count: int) -> None:
    """Count `count` more queued pages of a locked tenant, which joins the others if it had none."""
    values = {"pages_queued": tenant.pages_queued + count}
    if tenant.pages_queued == 0:
        in_use = transaction.scalar(select(func.min(tenants.c.pass_)).where(TENANT_HAS_QUEUED))
        last = 0 if in_use is not None else transaction.scalar(select(func.max(tenants.c.pass_)))
        values["pass_"] = joining_pass(tenant.pass_, TENANT_STRIDE, _given(in_use), last)
    transaction.run(update(tenants).where(tenants.c.name == tenant.name).values(values))


def document_pass(transaction: Transaction, tenant: Row[Any], priority: int, own: int = 0) -> int:
    """Pass at which a document that had no page in the queue joins the others of its locked tenant."""
    in_use = transaction.scalar(
        select(func.min(documents.c.pass_)).where(documents.c.tenant == tenant.name, DOCUMENT_HAS_QUEUED)
    )
    return joining_pass(own, stride(priority), _given(in_use), tenant.last_document_pass)


def requeue(transaction: Transaction, tenant: Row[Any], document: Row[Any], count: int, **values: Any) -> Row[Any]:
    """Count `count` pages of a locked document as queued again, and set `values` with it; the document's new row."""
    values["pages_queued"] = document.pages_queued + count
    if document.pages_queued == 0:
        values["pass_"] = document_pass(transaction, tenant, document.priority, document.pass_)
    count_queued(transaction, tenant, count)
    return transaction.one(
        update(documents).where(documents.c.id == document.id).values(values).returning(*documents.c)
    )


def _given(value: int | None) -> tuple[int, ...]:
    return () if value is None else (value,)
