"""A document's events as a read of the journal from a cursor, woken by its changes.

So a stream can be resumed, replayed after the end, and read by anybody as often as they like.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from app.api.cursors import Order, PageCursor, parse_page_cursor, parse_seq
from app.api.shapes import event_shape
from app.documents.records import Document, Event
from app.documents.states import EventKind, PageState
from app.errors import CursorInvalid, Gone, NotFound, StoreUnavailable
from app.journal import Journal

BATCH = 100
"""Events or pages read from the journal at a time."""
POLL_SECONDS = 15.0
"""Time between two looks at a document that nothing was told of: the safety net of notifications."""
STORE_RETRY_SECONDS = 1.0
"""Time between two looks for a store that is away."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event as clients see it, with the cursor from which a stream goes on after it."""

    id: str
    kind: EventKind
    data: dict[str, Any]


class EventOrder(Protocol):
    """One of the orders in which a document's events are streamed; remembers where it is."""

    async def is_over(self) -> bool:
        """Whether the cursor is that of the `end`, and nothing newer will come."""
        ...

    def ready(self) -> AsyncIterator[StreamEvent]:
        """The events that can be sent now. Raises `NotFound` once the document is deleted.

        After a `StoreUnavailable` it may be called again: it goes on after the last event that it gave.
        """
        ...


class CompletedOrder:
    """Pages as they end; the cursor is `seq`."""

    def __init__(self, journal: Journal, document: Document, cursor: str | None, root_path: str) -> None:
        """Raises `CursorInvalid`."""
        self._journal = journal
        self._document = document
        self._root_path = root_path
        self._seq = parse_seq(cursor) if cursor is not None else 0
        if self._seq > document.seq:
            raise CursorInvalid(f"this document has no event {self._seq} yet")

    async def is_over(self) -> bool:
        return self._document.state.ended and self._seq == self._document.seq

    async def ready(self) -> AsyncIterator[StreamEvent]:
        # One read a wake-up as a rule: a hundred clients may follow one document.
        while events := await self._journal.events(self._document.id, after=self._seq, limit=BATCH):
            for event in events:
                if event.page is None:
                    self._document = await self._journal.document(self._document.id)
                self._seq = event.seq
                yield StreamEvent(str(event.seq), event.kind, event_shape(event, self._document, self._root_path))
            if len(events) < BATCH:
                return
        await self._journal.document(self._document.id)


class PageOrder:
    """Pages by number, each as soon as all before it have ended; the cursor is `R.N`."""

    def __init__(self, journal: Journal, document: Document, cursor: str | None, root_path: str) -> None:
        """Raises `CursorInvalid`. After a retry, and from a cursor before it, pages start again at the first."""
        self._journal = journal
        self._document = document
        self._root_path = root_path
        self._cursor = parse_page_cursor(cursor) if cursor is not None else None
        if self._cursor is not None and self._cursor.retries > document.retries:
            raise CursorInvalid(f"this document was retried {document.retries} times only")

    async def is_over(self) -> bool:
        """The end's cursor is one page past the last: the page before it doesn't exist either."""
        document, cursor = self._document, self._cursor
        if not document.state.ended or cursor is None or cursor.retries < document.retries or cursor.page == 0:
            return False
        return not await self._journal.pages(document.id, after=cursor.page - 1, limit=1)

    async def ready(self) -> AsyncIterator[StreamEvent]:
        # The document is read before its pages: if it has ended, so have they.
        document = await self._journal.document(self._document.id)
        if self._cursor is None:
            yield self._event(document, 0, Event(1, EventKind.DOCUMENT))
        assert self._cursor is not None
        if self._cursor.retries < document.retries:
            self._cursor = PageCursor(document.retries, 0)
        while pages := await self._journal.pages(document.id, after=self._cursor.page, limit=BATCH):
            for page in pages:
                if not page.state.ended:
                    return
                self._cursor = PageCursor(document.retries, page.number)
                if page.state is not PageState.CANCELLED:
                    yield self._event(document, page.number, Event(page.seq or 0, EventKind.PAGE, page))
        if document.state.ended:
            await self._journal.document(document.id)  # of one deleted meanwhile no further pages were found either
            yield self._event(document, self._cursor.page + 1, Event(document.seq, EventKind.END))

    def _event(self, document: Document, number: int, event: Event) -> StreamEvent:
        self._cursor = PageCursor(document.retries, number)
        data = event_shape(event, document, self._root_path)
        return StreamEvent(str(self._cursor), event.kind, {**data, "id": str(self._cursor)})


def event_order(order: Order, journal: Journal, document: Document, cursor: str | None, root_path: str) -> EventOrder:
    """Raises `CursorInvalid`."""
    kind = CompletedOrder if order is Order.COMPLETED else PageOrder
    return kind(journal, document, cursor, root_path)


async def follow(journal: Journal, document_id: str, order: EventOrder) -> AsyncGenerator[StreamEvent, None]:
    """All events from the order's cursor on, as they come. A store that is away is waited for.

    Ends after the `end` event, or when the document is deleted.
    """
    with journal.changes.watch(document_id) as watch:
        while True:
            wait_seconds = POLL_SECONDS
            try:
                async for event in order.ready():
                    yield event
                    if event.kind is EventKind.END:
                        return
            except (NotFound, Gone):
                return
            except StoreUnavailable:
                wait_seconds = STORE_RETRY_SECONDS
            await watch.changed(wait_seconds)
