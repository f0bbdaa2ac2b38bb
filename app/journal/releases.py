"""Pages that go back into the queue unread: handed back, or left by a gateway that died."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, select, update

from app.documents.records import Claim
from app.documents.states import PageState
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.queueing import count_queued, document_pass, lock_document, lock_tenant
from app.journal.tables import documents, pages
from app.telemetry.metrics import PAGES_QUEUED

_REQUEUED = {
    "state": PageState.QUEUED,
    "claim_number": pages.c.claim_number + 1,
    "claim_owner": None,
    "claim_expires_at": None,
}


class Releases:
    """Hands pages of one gateway, `owner`, back."""

    def __init__(self, changes: Changes, owner: str) -> None:
        self._changes = changes
        self._owner = owner

    def release(self, transaction: Transaction, claim: Claim, attempts: int, not_before_seconds: float) -> bool:
        """Queue a claimed page again, not to be claimed for `not_before_seconds`; False where the claim is void."""
        tenant = lock_tenant(transaction, claim.tenant)
        document = lock_document(transaction, claim.document_id)
        due = datetime.now(UTC) + timedelta(seconds=not_before_seconds)
        released = transaction.run(
            update(pages)
            .where(
                pages.c.document_id == claim.document_id,
                pages.c.number == claim.page,
                pages.c.state == PageState.RUNNING,
                pages.c.claim_owner == self._owner,
                pages.c.claim_number == claim.number,
            )
            .values(_REQUEUED | {"attempts": attempts, "queued_at": due, "not_before": due})
        )
        if document is None or not released:
            return False
        _requeue(transaction, tenant, document, 1)
        transaction.after(PAGES_QUEUED.inc)
        transaction.after(lambda: self._announce(not_before_seconds))
        return True

    def _announce(self, in_seconds: float) -> None:
        if in_seconds > 0:
            asyncio.get_running_loop().call_later(in_seconds, self._changes.queued)
        else:
            self._changes.queued()


def free_claims(transaction: Transaction) -> None:
    """Queue every claimed page again: a gateway that is alone frees what its predecessor held."""
    now = datetime.now(UTC)
    for document in transaction.rows(select(documents).where(documents.c.pages_running > 0).order_by(documents.c.id)):
        transaction.run(
            update(pages)
            .where(pages.c.document_id == document.id, pages.c.state == PageState.RUNNING)
            .values(_REQUEUED | {"queued_at": now})
        )
        _requeue(transaction, lock_tenant(transaction, document.tenant), document, document.pages_running)


def _requeue(transaction: Transaction, tenant: Row[Any], document: Row[Any], count: int) -> None:
    """Count `count` running pages as queued again."""
    values = {"pages_queued": document.pages_queued + count, "pages_running": document.pages_running - count}
    if document.pages_queued == 0:
        values["pass_"] = document_pass(transaction, tenant, document.pass_)
    transaction.run(update(documents).where(documents.c.id == document.id).values(values))
    count_queued(transaction, tenant, count)
