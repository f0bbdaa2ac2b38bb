"""Rows locked in the order that holds everywhere: tenants, documents, pages; of a kind by their key."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row, Select, select, tuple_

from app.documents.states import PageState
from app.journal.absence import absence, is_document_id, tombstone_of
from app.journal.database import Transaction
from app.journal.tables import documents, pages, tenants

Fence = tuple[str, int, int]
"""Document id, page number, claim number."""


def lock_tenant(transaction: Transaction, name: str) -> Row[Any]:
    """The tenant's row, which is made at its first use."""
    (row,) = lock_tenants(transaction, {name}) or _make_tenant(transaction, name)
    return row


def _make_tenant(transaction: Transaction, name: str) -> Sequence[Row[Any]]:
    transaction.insert_if_absent(tenants, {"name": name})
    return lock_tenants(transaction, {name})


def lock_tenants(transaction: Transaction, names: Collection[str] | Select[Any]) -> Sequence[Row[Any]]:
    """The tenants' rows by name; `names` may be a query for them."""
    return transaction.rows(
        select(tenants).where(tenants.c.name.in_(names)).order_by(tenants.c.name).with_for_update(key_share=True)
    )


def lock_document(transaction: Transaction, document_id: str) -> Row[Any] | None:
    """The caller has locked the document's tenant, or never will."""
    return next(iter(lock_documents(transaction, {document_id})), None)


def lock_documents(transaction: Transaction, ids: Collection[str]) -> Sequence[Row[Any]]:
    """The documents' rows by id. The caller has locked their tenants, or never will."""
    return transaction.rows(
        select(documents).where(documents.c.id.in_(ids)).order_by(documents.c.id).with_for_update(key_share=True)
    )


def lock_claimed(transaction: Transaction, owner: str, keys: Collection[tuple[str, int]]) -> set[Fence]:
    """Fences of those pages, by document id and number, that gateway `owner` holds. Their documents are locked."""
    rows = transaction.rows(
        select(pages.c.document_id, pages.c.number, pages.c.claim_number)
        .where(
            tuple_(pages.c.document_id, pages.c.number).in_(keys),
            pages.c.state == PageState.RUNNING,
            pages.c.claim_owner == owner,
        )
        .order_by(pages.c.document_id, pages.c.number)
        .with_for_update()
    )
    return {(row.document_id, row.number, row.claim_number) for row in rows}


def lock_owned(transaction: Transaction, document_id: str, tenant: str | None) -> tuple[Row[Any], Row[Any]]:
    """The rows of the tenant and of its document; raises `NotFound` and `Gone`."""
    if not is_document_id(document_id):
        raise absence([])
    owner = transaction.scalar(select(documents.c.tenant).where(documents.c.id == document_id))
    if owner is not None and tenant in (None, owner):
        tenant_row = lock_tenant(transaction, owner)
        document = lock_document(transaction, document_id)
        if document is not None:
            return tenant_row, document
    raise absence(transaction.rows(tombstone_of(document_id, tenant)))
