"""Pages that go back into the queue unread: handed back, or left by a gateway that died."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, bindparam, select, tuple_, update

from app.documents.records import Claim
from app.documents.states import PageState
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.locks import lock_document, lock_documents, lock_tenant, lock_tenants
from app.journal.queueing import QUEUED_AGAIN, requeue
from app.journal.tables import IS_CLAIMED, documents, gateways, pages

HAS_NO_GATEWAY = and_(IS_CLAIMED, pages.c.claim_owner.not_in(select(gateways.c.id)))
"""Condition on a page: the gateway that claimed it is dead."""

_HAND_BACK = (
    update(pages)
    .where(pages.c.document_id == bindparam("key_document"), pages.c.number == bindparam("key_number"))
    .values(QUEUED_AGAIN)
)


@dataclass(frozen=True, slots=True)
class Release:
    """A claimed page that is handed back."""

    claim: Claim
    attempts: int
    """Charged to the page so far, over all its claims."""
    not_before_seconds: float = 0.0
    """It can't be claimed again before; at most a minute, see `turns.is_due`."""


class Releases:
    """Hands pages of one gateway, `owner`, back."""

    def __init__(self, changes: Changes, owner: str) -> None:
        self._changes = changes
        self._owner = owner

    def release(self, transaction: Transaction, group: Sequence[Release]) -> list[bool]:
        """Queue claimed pages again; False for each whose claim is void. Locks tenants, documents, then pages."""
        tenants = {row.name: row for row in lock_tenants(transaction, {item.claim.tenant for item in group})}
        rows = {row.id: row for row in lock_documents(transaction, {item.claim.document_id for item in group})}
        held = self._lock_held(transaction, [item.claim for item in group])
        released = [item for item in group if item.claim in held]
        transaction.run_many(_HAND_BACK, [_hand_back(transaction, item) for item in released])
        for document in rows.values():
            count = sum(item.claim.document_id == document.id for item in released)
            if count:
                tenant = tenants[document.tenant]
                requeue(transaction, tenant, document, count, pages_running=document.pages_running - count)
                tenants[document.tenant] = lock_tenant(transaction, document.tenant)  # as it is now
        self._announce_after(transaction, released)
        return [item.claim in held for item in group]

    def held(self, transaction: Transaction) -> set[tuple[str, int, int]]:
        """Fences (document id, page, claim number) of all pages that the gateway has claimed."""
        columns = (pages.c.document_id, pages.c.number, pages.c.claim_number)
        rows = transaction.rows(select(*columns).where(IS_CLAIMED, pages.c.claim_owner == self._owner))
        return {(row.document_id, row.number, row.claim_number) for row in rows}

    def _lock_held(self, transaction: Transaction, claims: Collection[Claim]) -> set[Claim]:
        by_fence = {(*claim.key, claim.number): claim for claim in claims}
        rows = transaction.rows(
            select(pages.c.document_id, pages.c.number, pages.c.claim_number)
            .where(
                tuple_(pages.c.document_id, pages.c.number).in_({claim.key for claim in claims}),
                pages.c.state == PageState.RUNNING,
                pages.c.claim_owner == self._owner,
            )
            .order_by(pages.c.document_id, pages.c.number)
            .with_for_update()
        )
        fences = {(row.document_id, row.number, row.claim_number) for row in rows}
        return {claim for fence, claim in by_fence.items() if fence in fences}

    def _announce_after(self, transaction: Transaction, released: Sequence[Release]) -> None:
        if not released:
            return

        def announce() -> None:
            for seconds in {item.not_before_seconds for item in released}:
                asyncio.get_running_loop().call_later(seconds, self._changes.queued)

        transaction.after(announce)

    def free(self, transaction: Transaction, condition: ColumnElement[bool]) -> int:
        """Queue again the claimed pages of one document that fulfil `condition`, nothing charged; how many.

        0: there are no more such pages. One document at a time, so that locks are taken in the order of all.
        """
        found = transaction.one_or_none(
            select(documents.c.id, documents.c.tenant).join(pages).where(IS_CLAIMED, condition).limit(1)
        )
        if found is None:
            return 0
        tenant = lock_tenant(transaction, found.tenant)
        document = lock_document(transaction, found.id)
        return 0 if document is None else self._free(transaction, tenant, document, condition)

    def _free(
        self, transaction: Transaction, tenant: Row[Any], document: Row[Any], condition: ColumnElement[bool]
    ) -> int:
        freed = transaction.run(
            update(pages)
            .where(pages.c.document_id == document.id, pages.c.state == PageState.RUNNING, condition)
            .values(QUEUED_AGAIN | {"queued_at": transaction.now})
        )
        if freed:
            requeue(transaction, tenant, document, freed, pages_running=document.pages_running - freed)
            transaction.after(self._changes.queued)
        return freed


def is_page(fence: tuple[str, int, int]) -> ColumnElement[bool]:
    """Condition on a page: document id, number, claim number."""
    return tuple_(pages.c.document_id, pages.c.number, pages.c.claim_number) == tuple_(*fence)


def _hand_back(transaction: Transaction, item: Release) -> dict[str, Any]:
    due = transaction.now + timedelta(seconds=item.not_before_seconds)
    return {
        "key_document": item.claim.document_id,
        "key_number": item.claim.page,
        "attempts": item.attempts,
        "queued_at": due,
        "not_before": due,
    }
