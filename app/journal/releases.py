"""Pages that go back into the queue unread: handed back, or left by a gateway that died."""

import asyncio
from datetime import UTC, datetime, timedelta

from sqlalchemy import select, update

from app.documents.records import Claim
from app.documents.states import PageState
from app.journal.changes import Changes
from app.journal.database import Transaction
from app.journal.locks import lock_document, lock_tenant
from app.journal.queueing import QUEUED_AGAIN, requeue
from app.journal.tables import documents, pages
from app.telemetry.metrics import PAGES_QUEUED


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
            .values(QUEUED_AGAIN | {"attempts": attempts, "queued_at": due, "not_before": due})
        )
        if document is None or not released:
            return False
        requeue(transaction, tenant, document, 1, pages_running=document.pages_running - 1)
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
            .values(QUEUED_AGAIN | {"queued_at": now})
        )
        requeue(
            transaction, lock_tenant(transaction, document.tenant), document, document.pages_running, pages_running=0
        )
