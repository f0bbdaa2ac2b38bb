"""Pages that go back into the queue unread: handed back, or left by a gateway that died."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, bindparam, select, tuple_, update

from app.documents.records import Claim
from app.documents.states import PageState
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.locks import Fence, lock_claimed, lock_documents, lock_tenant, lock_tenants
from app.journal.queueing import QUEUED_AGAIN, requeue
from app.journal.tables import IS_CLAIMED, documents, gateways, pages

HAS_NO_GATEWAY = and_(IS_CLAIMED, pages.c.claim_owner.not_in(select(gateways.c.id)))
"""Condition on a page: the gateway that claimed it is dead."""

_DOCUMENTS_FREED = 100
"""In one transaction: about 1 ms each, and who takes over many of them must beat meanwhile."""
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
        lock_tenants(transaction, {item.claim.tenant for item in group})
        rows = lock_documents(transaction, {item.claim.document_id for item in group})
        held = lock_claimed(transaction, self._owner, {item.claim.key for item in group})
        released = {item.claim: item for item in group if item.claim.fence in held}  # a claim may be there twice
        transaction.run_many(_HAND_BACK, [_hand_back(transaction, item) for item in released.values()])
        _requeue(transaction, rows, Counter(claim.document_id for claim in released))
        self._announce_after(transaction, released.values())
        return [item.claim.fence in held for item in group]

    def held(self, transaction: Transaction) -> set[Fence]:
        """Fences of all pages that the gateway has claimed."""
        columns = (pages.c.document_id, pages.c.number, pages.c.claim_number)
        rows = transaction.rows(select(*columns).where(IS_CLAIMED, pages.c.claim_owner == self._owner))
        return {(row.document_id, row.number, row.claim_number) for row in rows}

    def _announce_after(self, transaction: Transaction, released: Collection[Release]) -> None:
        if not released:
            return

        def announce() -> None:
            for seconds in {item.not_before_seconds for item in released}:
                asyncio.get_running_loop().call_later(seconds, self._changes.queued)

        transaction.after(announce)

    def free(self, transaction: Transaction, condition: ColumnElement[bool]) -> int:
        """Queue again the claimed pages that fulfil `condition`, nothing charged, of some documents; how many pages.

        0: there are no more such pages, or another gateway is at them.
        """
        found = transaction.rows(
            select(documents.c.id, documents.c.tenant)
            .join(pages)
            .where(IS_CLAIMED, condition)
            .distinct()
            .limit(_DOCUMENTS_FREED)
        )
        if not found:
            return 0
        lock_tenants(transaction, {row.tenant for row in found})
        rows = lock_documents(transaction, {row.id for row in found})
        freed = transaction.rows(
            update(pages)
            .where(pages.c.document_id.in_([row.id for row in rows]), pages.c.state == PageState.RUNNING, condition)
            .values(QUEUED_AGAIN | {"queued_at": transaction.now})
            .returning(pages.c.document_id)
        )
        _requeue(transaction, rows, Counter(row.document_id for row in freed))
        if freed:
            transaction.after(self._changes.queued)
        return len(freed)


def is_one_of(fences: Collection[Fence]) -> ColumnElement[bool]:
    """Condition on a page."""
    return tuple_(pages.c.document_id, pages.c.number, pages.c.claim_number).in_(fences)


def _requeue(transaction: Transaction, rows: Iterable[Row[Any]], counts: Mapping[str, int]) -> None:
    """Count pages of locked documents, by document id, as queued and no longer as running."""
    for document in rows:
        if count := counts.get(document.id):
            tenant = lock_tenant(transaction, document.tenant)  # as it is now, with its other documents
            requeue(transaction, tenant, document, count, pages_running=document.pages_running - count)


def _hand_back(transaction: Transaction, item: Release) -> dict[str, Any]:
    due = transaction.now + timedelta(seconds=item.not_before_seconds)
    return {
        "key_document": item.claim.document_id,
        "key_number": item.claim.page,
        "attempts": item.attempts,
        "queued_at": due,
        "not_before": due,
    }
