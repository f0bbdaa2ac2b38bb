"""Claims: a gateway's right to work on a page."""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, bindparam, func, select, update

from app.documents.fairness import TENANT_STRIDE, stride
from app.documents.page_ranges import LAST_PAGE_NUMBER
from app.documents.records import Claim
from app.documents.states import DocumentState, PageState
from app.journal.database import Transaction
from app.journal.locks import lock_documents
from app.journal.rows import claim_of
from app.journal.tables import documents, is_queued, pages, tenants
from app.journal.turns import Turns, is_due

_PEERS = pages.alias("peers")
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
        due = _lock_due_pages(transaction, Counter(order))
        claims = [claim_of(rows[key], due[key].popleft(), profiles[0]) for key in order if due[key]]
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


def _lock_due_pages(transaction: Transaction, shares: Mapping[str, int]) -> Mapping[str, deque[Row[Any]]]:
    """By document, as many of its first due pages as it has turns."""
    ids_by_share: defaultdict[int, list[str]] = defaultdict(list)
    for document_id, share in shares.items():
        ids_by_share[share].append(document_id)
    found: defaultdict[str, deque[Row[Any]]] = defaultdict(deque)
    for share, ids in ids_by_share.items():
        for row in transaction.rows(_first_due_pages(ids, share, transaction.now)):
            found[row.document_id].append(row)
    return found


def _first_due_pages(ids: Sequence[str], share: int, now: datetime) -> Select[Any]:
    """The first `share` due pages of each document, read through the index of queued pages only."""
    last = (
        select(_PEERS.c.number)
        .where(_PEERS.c.document_id == documents.c.id, is_queued(_PEERS), is_due(_PEERS, now))
        .order_by(_PEERS.c.number)
        .limit(1)
        .offset(share - 1)
        .scalar_subquery()
    )
    return (
        select(*_PAGE_COLUMNS)
        .join(documents)
        .where(documents.c.id.in_(ids), is_queued(pages), is_due(pages, now))
        .where(pages.c.number <= func.coalesce(last, LAST_PAGE_NUMBER))
        .order_by(pages.c.document_id, pages.c.number)
        .with_for_update(of=pages, skip_locked=True)
    )


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
