"""What waits in the queue: before one document, and in all.

The order of service is known: each tenant and each document is served whenever its pass, which then moves on by its
stride, is the smallest. So what is served before a document's last page is counted from the passes as they are now; who
comes later may still overtake it.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    FromClause,
    Row,
    ScalarSelect,
    Select,
    String,
    bindparam,
    case,
    func,
    select,
)

from app.documents.fairness import TENANT_STRIDE, stride
from app.documents.options import MAX_PRIORITY
from app.documents.records import Capacity, Document, Outlook
from app.journal.database import Database
from app.journal.peers import Peers
from app.journal.queueing import QUEUE_DEPTH
from app.journal.tables import DOCUMENT_HAS_QUEUED, IS_CLAIMED, TENANT_HAS_QUEUED, documents, pages, tenants

MAX_POSITION = 2_000
"""Documents that are counted; a position behind them is given as this."""
MAX_ENTRIES = 1_000
"""Documents, and tenants, whose pages are counted. Of more documents the rest is taken to be like them."""

# Where the document in question stands is asked first and given as values: were it joined, PostgreSQL would read all of
# the index rather than the range.
_ID = bindparam("document_id", type_=String)
_TENANT = bindparam("tenant", type_=String)
_PASS = bindparam("pass", type_=BigInteger)
_LAST = bindparam("last", type_=BigInteger)


class Outlooks:
    def __init__(self, database: Database, peers: Peers) -> None:
        self._database = database
        self._peers = peers

    async def outlook(self, document: Document) -> Outlook | None:
        """None once a page has ended: the document's own pace says more."""
        rows = [] if document.counts.ended else await self._database.read(_STANDING.params(document_id=document.id))
        if not rows:
            return None
        (own,) = rows
        position, ahead = await self._within_tenant(own) if own.pages_queued else (0, 0)
        last = own.tenant_pass + (ahead - 1) * TENANT_STRIDE
        others = await self._one(_BEFORE_TENANT.params(tenant=own.tenant, last=last))
        return Outlook(position, ahead + int(others.served) + others.running, self._peers.pages_per_second)

    async def capacity(self) -> Capacity:
        row = await self._one(_CAPACITY)
        return Capacity(int(row.queued), row.running, self._peers.pages_per_second, self._peers.count)

    async def _within_tenant(self, own: Row[Any]) -> tuple[int, int]:
        """Position of a document among those of its tenant, and their pages until its last."""
        last = own.pass_ + (own.pages_queued - 1) * stride(own.priority)
        place = {"tenant": own.tenant, "document_id": own.id, "pass": own.pass_, "last": last}
        before = await self._one(_BEFORE_DOCUMENT.params(place))
        ahead = int(before.served)
        if before.looked_at == MAX_ENTRIES:
            ahead = ahead * own.tenant_queued // int(before.queued)
        return min(MAX_POSITION, before.at_smaller_passes + before.at_the_same_pass), ahead

    async def _one(self, statement: Executable) -> Row[Any]:
        (row,) = await self._database.read(statement)
        return row


def _count(statement: Select[Any]) -> ScalarSelect[int]:
    return select(func.count()).select_from(statement.subquery()).scalar_subquery()


def _sum(column: ColumnElement[int]) -> ColumnElement[int]:
    return func.coalesce(func.sum(column), 0)


def _served(queued: ColumnElement[int], room: ColumnElement[int], step: ColumnElement[int] | int) -> ColumnElement[int]:
    """Of `queued` pages those that are served until the pass has moved on by `room`; negative: none."""
    turns = room // step + 1
    return case((room < 0, 0), (turns < queued, turns), else_=queued)


def _stride_of(table: FromClause) -> ColumnElement[int]:
    return case({priority: stride(priority) for priority in range(MAX_PRIORITY + 1)}, value=table.c.priority)


def _before_document() -> Select[int, int, int, int, int]:
    """One row: the tenant's documents, and their pages, that are served up to `_LAST`, the last page of `_ID`."""
    room = _LAST - documents.c.pass_ - case((documents.c.id > _ID, 1), else_=0)
    claimable = (
        select(_served(documents.c.pages_queued, room, _stride_of(documents)).label("served"), documents.c.pages_queued)
        .where(documents.c.tenant == _TENANT, DOCUMENT_HAS_QUEUED)
        .order_by(documents.c.pass_, documents.c.id)
    )
    looked_at = claimable.where(documents.c.pass_ <= _LAST).limit(MAX_ENTRIES).subquery()
    ids = claimable.with_only_columns(documents.c.id).limit(MAX_POSITION)
    return select(
        # Two ranges of the index: SQLite would read all documents of the same pass for one that comprises both.
        _count(ids.where(documents.c.pass_ < _PASS)).label("at_smaller_passes"),
        _count(ids.where(documents.c.pass_ == _PASS, documents.c.id <= _ID)).label("at_the_same_pass"),
        func.count().label("looked_at"),
        _sum(looked_at.c.served).label("served"),
        _sum(looked_at.c.pages_queued).label("queued"),
    ).select_from(looked_at)


def _before_tenant() -> Select[int, int]:
    """One row: pages of other tenants that are served up to `_LAST`, a pass of `_TENANT`, and all pages running."""
    room = _LAST - tenants.c.pass_ - case((tenants.c.name > _TENANT, 1), else_=0)
    looked_at = (
        select(_served(tenants.c.pages_queued, room, TENANT_STRIDE).label("served"))
        .where(TENANT_HAS_QUEUED, tenants.c.pass_ <= _LAST, tenants.c.name != _TENANT)
        .order_by(tenants.c.pass_, tenants.c.name)
        .limit(MAX_ENTRIES)
        .subquery()
    )
    return select(_sum(looked_at.c.served).label("served"), _RUNNING.label("running"))


# Made once: to make them takes longer than to run them.
_STANDING = (
    select(
        documents.c.id,
        documents.c.tenant,
        documents.c.pass_,
        documents.c.priority,
        documents.c.pages_queued,
        tenants.c.pass_.label("tenant_pass"),
        tenants.c.pages_queued.label("tenant_queued"),
    )
    .join(tenants)
    .where(documents.c.id == _ID)
)
_RUNNING = _count(select(pages.c.number).where(IS_CLAIMED))
_BEFORE_DOCUMENT = _before_document()
_BEFORE_TENANT = _before_tenant()
_CAPACITY = select(QUEUE_DEPTH.scalar_subquery().label("queued"), _RUNNING.label("running"))
