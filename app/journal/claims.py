"""Claims: a gateway's right to work on a page."""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, bindparam, select, union_all, update

from app.documents.fairness import TENANT_STRIDE, stride
from app.documents.records import Claim
from app.documents.states import DocumentState, PageState
from app.journal.database import Transaction
from app.journal.locks import lock_documents
from app.journal.rows import claim_of
from app.journal.tables import documents, is_queued, pages, tenants
from app.journal.turns import Turns, is_due

_DOCUMENTS_A_STATEMENT = 100
"""SQLite takes 500 parts of a union."""
_PAGE_COLUMNS = (
    pages.c.document_id,
    pages.c.number,
    pages.c.claim_number,
    pages.c.attempts,
    pages.c.lane_deaths,
    pages.c.queued_at,
)
_TAKE_PAGE = update(pages).where(
    pages.c.document_id == bindparam("key_document"), pages.c.number == bindparam("key_number")
)
_MOVE_DOCUMENT = update(documents).where(documents.c.id == bindparam("key"))
_MOVE_TENANT = update(tenants).where(tenants.c.name == bindparam("key"))


class Claims:
    """Claims of one gateway, `owner`."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def claim(
        self, transaction: Transaction, limit: int, profiles: Sequence[str], without: Collection[str]
    ) -> list[Claim]:
        """At most `limit` claims in stride order; fewer where some pages of a chosen document are not due yet.

        The cost depends on `limit`, not on how many pages or documents wait.
        """
        turns = Turns(transaction, profiles, without, limit)
        tenant_rows = turns.lock_tenants()
        order = turns.in_order(tenant_rows)
        rows = {row.id: row for row in lock_documents(transaction, set(order))}
        due = _due_pages(transaction, Counter(key for key in order if key in rows))
        claims = [claim_of(rows[key], due[key].popleft(), profiles[0]) for key in order if due.get(key)]
        self._take_pages(transaction, claims)
        document_moves = _document_moves(claims, rows, transaction.now)
        transaction.run_many(_MOVE_DOCUMENT, document_moves)
        transaction.run_many(_MOVE_TENANT, _tenant_moves(claims, tenant_rows, document_moves))
        return claims

    def _take_pages(self, transaction: Transaction, claims: Iterable[Claim]) -> None:
        transaction.run_many(
            _TAKE_PAGE,
            [
                {
                    "key_document": claim.document_id,
                    "key_number": claim.page,
                    "state": PageState.RUNNING,
                    "claim_number": claim.number,
                    "claim_owner": self._owner,
                }
                for claim in claims
            ],
        )


def _due_pages(transaction: Transaction, shares: Mapping[str, int]) -> Mapping[str, deque[Row[Any]]]:
    """By document, as many of its first due pages as it has turns.

    They are not locked: no queued page moves without its document, which is.
    """
    found: defaultdict[str, deque[Row[Any]]] = defaultdict(deque)
    parts = [_first_due_pages(document_id, share, transaction.now) for document_id, share in shares.items()]
    for start in range(0, len(parts), _DOCUMENTS_A_STATEMENT):
        for row in transaction.rows(union_all(*parts[start : start + _DOCUMENTS_A_STATEMENT])):
            found[row.document_id].append(row)
    return {document_id: deque(sorted(rows, key=_number)) for document_id, rows in found.items()}


def _first_due_pages(document_id: str, share: int, now: datetime) -> Select[Any]:
    """Read through the index of queued pages only, and no further than needed, with or without statistics."""
    first = (
        select(*_PAGE_COLUMNS)
        .where(pages.c.document_id == document_id, is_queued(pages), is_due(pages, now))
        .order_by(pages.c.number)
        .limit(share)
    )
    return select(first.subquery())


def _number(page: Row[Any]) -> int:
    number: int = page.number
    return number


def _document_moves(claims: Sequence[Claim], rows: Mapping[str, Row[Any]], now: datetime) -> list[dict[str, Any]]:
    """New values of each document that gave pages."""
    taken = Counter(claim.document_id for claim in claims)
    profiles = {claim.document_id: claim.profile for claim in claims}
    return [
        {
            "key": key,
            "state": DocumentState.RUNNING,
            "started_at": rows[key].started_at or now,
            "profile": profiles[key],
            "pass_": rows[key].pass_ + count * stride(rows[key].priority),
            "pages_queued": rows[key].pages_queued - count,
            "pages_running": rows[key].pages_running + count,
        }
        for key, count in taken.items()
    ]


def _tenant_moves(
    claims: Sequence[Claim], rows: Iterable[Row[Any]], document_moves: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """New values of each tenant that gave pages."""
    taken = Counter(claim.tenant for claim in claims)
    tenant_of = {claim.document_id: claim.tenant for claim in claims}
    last = {row.name: row.last_document_pass for row in rows}
    for move in document_moves:
        tenant = tenant_of[move["key"]]
        last[tenant] = max(last[tenant], move["pass_"])
    return [
        {
            "key": row.name,
            "pass_": row.pass_ + taken[row.name] * TENANT_STRIDE,
            "last_document_pass": last[row.name],
            "pages_queued": row.pages_queued - taken[row.name],
        }
        for row in rows
        if taken[row.name]
    ]
