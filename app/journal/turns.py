"""Whose turn it is: the documents that a claim serves, in stride order."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Row, and_, exists, or_, select, union_all

from app.documents.fairness import TENANT_STRIDE, stride
from app.journal.database import Transaction
from app.journal.locks import lock_tenants
from app.journal.stride_queue import Entry, StrideQueue
from app.journal.tables import DOCUMENT_HAS_QUEUED, TENANT_HAS_QUEUED, documents, is_queued, pages, tenants

_LONGEST_DELAY = timedelta(minutes=1)
"""A page that is due later than this was put off by a clock that has since been set back."""


def is_due(table: FromClause, now: datetime) -> ColumnElement[bool]:
    """Condition on queued pages, `pages` or an alias of it: to be claimed now."""
    return or_(table.c.not_before <= now, table.c.not_before > now + _LONGEST_DELAY)


class Turns:
    """Among documents of any of `profiles`, or of none yet, that have a page to be claimed now."""

    def __init__(self, transaction: Transaction, profiles: Sequence[str], without: Collection[str], limit: int) -> None:
        """Documents whose ids are in `without` are passed over; `limit`: pages that are wanted in all."""
        self._transaction = transaction
        self._profiles = profiles
        self._limit = limit
        self._claimable = and_(
            DOCUMENT_HAS_QUEUED,
            documents.c.id.not_in(without),
            exists().where(pages.c.document_id == documents.c.id, is_queued(pages), is_due(pages, transaction.now)),
        )

    def lock_tenants(self) -> Sequence[Row[Any]]:
        """The tenants of the smallest passes that have such a document; at most as many as pages are wanted."""
        # Ordered, although any would do: so the index of claimable documents is read, not all that ever were.
        any_document = [
            select(documents.c.id)
            .where(documents.c.tenant == tenants.c.name, profile, self._claimable)
            .order_by(documents.c.profile, documents.c.pass_)
            .limit(1)
            .scalar_subquery()
            .is_not(None)
            for profile in self._profile_conditions()
        ]
        names = (
            select(tenants.c.name)
            .where(TENANT_HAS_QUEUED, or_(*any_document))
            .order_by(tenants.c.pass_, tenants.c.name)
            .limit(self._limit)
        )
        return lock_tenants(self._transaction, names)

    def in_order(self, tenant_rows: Iterable[Row[Any]]) -> list[str]:
        """Ids of the documents that give the next pages, one entry for each page.

        What is read of them can't change, although they are not locked: only who has locked their tenant changes it.
        """
        turns: list[str] = []
        queues: dict[str, StrideQueue] = {}
        order = StrideQueue(Entry(row.pass_, row.name, TENANT_STRIDE, row.pages_queued) for row in tenant_rows)
        while order and len(turns) < self._limit:
            tenant = order.first
            if tenant not in queues:
                queues[tenant] = self._documents(tenant, self._limit - len(turns))
            if queues[tenant]:
                turns.append(queues[tenant].serve())
                order.serve()
            else:
                order.drop()
        return turns

    def _documents(self, tenant: str, limit: int) -> StrideQueue:
        """The tenant's next `limit` documents, read through the index of claimable ones, for each profile its part."""
        columns = (documents.c.id, documents.c.pass_, documents.c.priority, documents.c.pages_queued)
        parts = [
            select(*columns)
            .where(documents.c.tenant == tenant, profile, self._claimable)
            # The profile is the same for all, but PostgreSQL must be told so where it is none, or it would sort them.
            .order_by(documents.c.profile, documents.c.pass_, documents.c.id)
            .limit(limit)
            .subquery()
            for profile in self._profile_conditions()
        ]
        rows = self._transaction.rows(union_all(*(select(part) for part in parts)))
        return StrideQueue(Entry(row.pass_, row.id, stride(row.priority), row.pages_queued) for row in rows)

    def _profile_conditions(self) -> list[ColumnElement[bool]]:
        """One for each range of the index."""
        return [documents.c.profile.is_(None), *(documents.c.profile == profile for profile in self._profiles)]
