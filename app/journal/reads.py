"""Reads: one statement each for what is there, on connections that never wait for a writer."""

from collections.abc import Collection
from contextlib import suppress
from uuid import UUID

from sqlalchemy import ColumnElement, and_, select, true

from app.documents.page_ranges import LAST_PAGE_NUMBER
from app.documents.records import Document, Event, Page
from app.documents.states import DocumentState
from app.errors import CursorInvalid, Gone, NotFound
from app.journal.absence import absence, is_document_id, tombstone_of
from app.journal.blobs import document_id_of
from app.journal.database import Database
from app.journal.queueing import QUEUE_DEPTH
from app.journal.rows import PAGE_COLUMNS, document_of, event_of, page_of
from app.journal.tables import documents, events, pages

_EVENTS = select(events.c.seq.label("event_seq"), events.c.kind, *PAGE_COLUMNS).select_from(
    events.outerjoin(pages, and_(pages.c.document_id == events.c.document_id, pages.c.number == events.c.page))
)


class Reads:
    """What the journal holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def document(self, document_id: str, tenant: str | None) -> Document:
        """Raises `NotFound`, also for another tenant's document, and `Gone`."""
        if not is_document_id(document_id):
            raise absence([])
        rows = await self._database.read(select(documents).where(documents.c.id == document_id, _owned_by(tenant)))
        if not rows:
            raise await self._absence(document_id, tenant)
        return document_of(rows[0])

    async def _absence(self, document_id: str, tenant: str | None) -> Gone | NotFound:
        return absence(await self._database.read(tombstone_of(document_id, tenant)))

    async def list_documents(
        self, tenant: str, state: DocumentState | None, limit: int, cursor: str | None
    ) -> tuple[list[Document], str | None]:
        """Newest first, and the cursor of those that follow, if any do; raises `CursorInvalid`."""
        conditions = [documents.c.tenant == tenant]
        if state is not None:
            conditions.append(documents.c.state == state)
        if cursor is not None:
            conditions.append(documents.c.id < _document_id(cursor))
        rows = await self._database.read(
            select(documents).where(*conditions).order_by(documents.c.id.desc()).limit(limit + 1)
        )
        listed = [document_of(row) for row in rows[:limit]]
        return listed, listed[-1].id if len(rows) > limit else None

    async def events(self, document_id: str, after: int, limit: int) -> list[Event]:
        rows = await self._database.read(
            _EVENTS.where(events.c.document_id == document_id, events.c.seq > after).order_by(events.c.seq).limit(limit)
        )
        return [event_of(row) for row in rows]

    async def pages(self, document_id: str, after: int, limit: int) -> list[Page]:
        rows = await self._database.read(
            select(*PAGE_COLUMNS)
            .where(pages.c.document_id == document_id, pages.c.number > after)
            .order_by(pages.c.number)
            .limit(limit)
        )
        return [page_of(row) for row in rows]

    async def page(self, document_id: str, number: int, tenant: str | None) -> Page:
        """Raises `NotFound`, also for a page that was not asked for, and `Gone`."""
        await self.document(document_id, tenant)
        found = await self.pages(document_id, number - 1, limit=1) if 1 <= number <= LAST_PAGE_NUMBER else []
        if not found or found[0].number != number:
            raise NotFound("the document has no such page, or it was not asked for")
        return found[0]

    async def queue_depth(self) -> int:
        (row,) = await self._database.read(QUEUE_DEPTH)
        return int(row[0])

    async def orphans(self, keys: Collection[str]) -> set[str]:
        ids = [document_id_of(key) for key in keys]
        rows = await self._database.read(select(documents.c.blob_key).where(documents.c.id.in_(ids)))
        return set(keys) - {row.blob_key for row in rows}


def _owned_by(tenant: str | None) -> ColumnElement[bool]:
    """Condition on a document; None is any tenant."""
    return true() if tenant is None else documents.c.tenant == tenant


def _document_id(cursor: str) -> str:
    """The cursor of a list is the id of the last document before it; raises `CursorInvalid`."""
    with suppress(ValueError):
        if str(UUID(cursor)) == cursor:
            return cursor
    raise CursorInvalid(f"{cursor[:40]!r} is no cursor of a list of documents")
