"""Pages that become claimable: at which pass their tenant and document join the queue."""

from typing import Any

from sqlalchemy import Row, func, insert, select, update

from app.documents.fairness import joining_pass
from app.journal.database import Transaction
from app.journal.tables import DOCUMENT_HAS_QUEUED, TENANT_HAS_QUEUED, documents, tenants


def lock_tenant(transaction: Transaction, name: str) -> Row[Any]:
    """The tenant's row, which is made at its first use."""
    statement = select(tenants).where(tenants.c.name == name).with_for_update(key_share=True)
    new = insert(tenants).values(name=name).returning(*tenants.c)
    return transaction.one_or_none(statement) or transaction.one(new)


def lock_document(transaction: Transaction, document_id: str) -> Row[Any] | None:
    """The caller has locked the document's tenant, or never will."""
    statement = select(documents).where(documents.c.id == document_id).with_for_update(key_share=True)
    return transaction.one_or_none(statement)


def count_queued(transaction: Transaction, tenant: Row[Any], count: int) -> None:
    """Count `count` more queued pages of a locked tenant, which joins at the smallest pass in use if it had none."""
    values = {"pages_queued": tenant.pages_queued + count}
    if tenant.pages_queued == 0:
        in_use = transaction.scalar(select(func.min(tenants.c.pass_)).where(TENANT_HAS_QUEUED))
        last = 0 if in_use is not None else transaction.scalar(select(func.max(tenants.c.pass_)))
        values["pass_"] = joining_pass(tenant.pass_, _given(in_use), last)
    transaction.run(update(tenants).where(tenants.c.name == tenant.name).values(values))


def document_pass(transaction: Transaction, tenant: Row[Any], own: int = 0) -> int:
    """Pass at which a document that had no page in the queue joins the others of its locked tenant."""
    in_use = transaction.scalar(
        select(func.min(documents.c.pass_)).where(documents.c.tenant == tenant.name, DOCUMENT_HAS_QUEUED)
    )
    return joining_pass(own, _given(in_use), tenant.last_document_pass)


def _given(value: int | None) -> tuple[int, ...]:
    return () if value is None else (value,)
