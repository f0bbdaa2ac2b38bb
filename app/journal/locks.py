"""Rows locked in the order that holds everywhere: tenant, document, pages."""

from typing import Any

from sqlalchemy import Row, insert, select

from app.journal.absence import absence, tombstone_of
from app.journal.database import Transaction
from app.journal.tables import documents, tenants


def lock_tenant(transaction: Transaction, name: str) -> Row[Any]:
    """The tenant's row, which is made at its first use."""
    statement = select(tenants).where(tenants.c.name == name).with_for_update(key_share=True)
    new = insert(tenants).values(name=name).returning(*tenants.c)
    return transaction.one_or_none(statement) or transaction.one(new)


def lock_document(transaction: Transaction, document_id: str) -> Row[Any] | None:
    """The caller has locked the document's tenant, or never will."""
    statement = select(documents).where(documents.c.id == document_id).with_for_update(key_share=True)
    return transaction.one_or_none(statement)


def lock_owned(transaction: Transaction, document_id: str, tenant: str | None) -> tuple[Row[Any], Row[Any]]:
    """The rows of the tenant and of its document; raises `NotFound` and `Gone`."""
    owner = transaction.scalar(select(documents.c.tenant).where(documents.c.id == document_id))
    if owner is not None and tenant in (None, owner):
        tenant_row = lock_tenant(transaction, owner)
        document = lock_document(transaction, document_id)
        if document is not None:
            return tenant_row, document
    raise absence(transaction.rows(tombstone_of(document_id, tenant)))
