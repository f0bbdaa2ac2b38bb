"""Reads: one statement each, on connections that never wait for a writer."""

from sqlalchemy import and_, select, true

from app.documents.records import Document, Event, Page
from app.errors import NotFound
from app.journal.admission import QUEUE_DEPTH
from app.journal.database import Database
from app.journal.rows import DOCUMENT_COLUMNS, PAGE_COLUMNS, document_of, event_of, page_of
from app.journal.tables import documents, events, pages

_EVENTS = select(events.c.seq.label("event_seq"), events.c.kind, *PAGE_COLUMNS).select_from(
    events.outerjoin(pages, and_(pages.c.document_id == events.c.document_id, pages.c.number == events.c.page))
)


class Reads:
    """What the journal holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def document(self, document_id: str, tenant: str | None) -> Document:
        """Raises `NotFound`, also for another tenant's document."""
        owned = true() if tenant is None else documents.c.tenant == tenant
        rows = await self._database.read(select(*DOCUMENT_COLUMNS).where(documents.c.id == document_id, owned))
        if not rows:
            raise NotFound("there is no such document")
        return document_of(rows[0])

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

    async def queue_depth(self) -> int:
        (row,) = await self._database.read(QUEUE_DEPTH)
        return int(row[0])

    async def blob_keys(self) -> set[str]:
        return {row.blob_key for row in await self._database.read(select(documents.c.blob_key))}
