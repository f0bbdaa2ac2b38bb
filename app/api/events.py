"""`/documents/{id}/events`: the stream of a document's pages as they end."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from app.api.auth import Reader
from app.api.context import Context, Ctx
from app.api.cursors import Order
from app.api.event_stream import EventOrder, event_order, follow
from app.api.negotiation import preferred
from app.api.streaming import HEARTBEATS, NDJSON, SSE, CuttableStream, Heartbeat, encode
from app.documents.records import Document

router = APIRouter(prefix="/documents", tags=["documents"])


@router.get("/{document_id}/events", responses={200: {"content": {SSE: {}, NDJSON: {}}}, 204: {}})
async def events(
    document_id: str,
    ctx: Ctx,
    caller: Reader,
    order: Annotated[Order, Query()] = Order.COMPLETED,
    after: Annotated[str | None, Query(description="cursor: the id of the last event seen")] = None,
    last_event_id: Annotated[str | None, Header()] = None,
    accept: Annotated[str | None, Header()] = None,
) -> Response:
    """Server-sent events, or NDJSON by `Accept`: `document`, one `page` for each page that ends, `end`.

    Replays what has happened, from a cursor if one is given, then follows; 204 when nothing is left to come.
    """
    media_type = preferred(accept, (SSE, NDJSON))
    document = await ctx.journal.document(document_id, caller.tenant)
    # The header wins: a browser reconnects to the same URL, its `after` included, and says there how far it has come.
    cursor = last_event_id or after
    position = event_order(order, ctx.journal, document, cursor or None, ctx.settings.root_path)
    if await position.is_over():
        return Response(status_code=204)
    return stream_events(ctx, document, position, media_type)


def stream_events(
    ctx: Context, document: Document, position: EventOrder, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """The events from `position` on, as a response of `media_type`."""
    chunks = encode(follow(ctx.journal, document.id, position), media_type)
    heartbeat = Heartbeat(HEARTBEATS[media_type], ctx.settings.heartbeat_seconds)
    return CuttableStream(chunks, media_type, ctx.draining, heartbeat, headers)
