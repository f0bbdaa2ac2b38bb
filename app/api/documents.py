"""`/documents`: upload, state, cancel, delete."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from email.utils import format_datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response

from app.api.auth import Reader, Writer
from app.api.bodies import body_chunks
from app.api.callers import Scope
from app.api.context import Context, Ctx
from app.api.cursors import Order
from app.api.event_stream import event_order
from app.api.events import stream_events
from app.api.links import next_link
from app.api.negotiation import preferred
from app.api.preferences import applied, preferred_wait, wait_for_end
from app.api.shapes import DocumentShape, document_link, document_shape
from app.api.streaming import NDJSON, SSE
from app.documents.records import Document
from app.documents.states import DocumentState
from app.errors import OptionInvalid, PagefleetError, StoreUnavailable
from app.intake import Accepted, Upload
from app.journal.blobs import discard

router = APIRouter(prefix="/documents", tags=["documents"])

MAX_DOCUMENTS_LISTED = 1000

_UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        "pages": {"type": "string", "examples": ["1-5,8,r3-r1"]},
                        "profile": {"type": "string"},
                        "priority": {"type": "integer", "minimum": 0, "maximum": 7},
                        "password": {"type": "string"},
                        "metadata": {"type": "string", "description": "a JSON object"},
                        "on_page_error": {"type": "string", "enum": ["keep", "text_layer", "fail"]},
                        "ttl": {"type": "integer", "description": "seconds to keep it after its end"},
                    },
                }
            },
            "application/pdf": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.post("", status_code=202, response_model=DocumentShape, openapi_extra=_UPLOAD_BODY)
async def create(
    request: Request,
    ctx: Ctx,
    caller: Writer,
    accept: Annotated[str | None, Header()] = None,
    prefer: Annotated[str | None, Header()] = None,
    content_type: Annotated[str | None, Header()] = None,
    content_disposition: Annotated[str | None, Header()] = None,
    content_length: Annotated[int | None, Header()] = None,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    """Take one file or several: multipart field `file`, or the body itself. Options are form fields or the query's.

    Answered when the file is stored and inspected: what can't be read is refused at once. With several files the
    answer is `{"documents": [document or {"error": problem}, …]}`. `Accept: text/event-stream` or
    `application/x-ndjson` streams the events of the one document in the same answer; `Prefer: wait=N` holds the answer
    until the document ends, N seconds. A request that is repeated with the same `Idempotency-Key`, files and options
    gets the documents that it made at first, and `Idempotent-Replayed: true`.
    """
    ctx.accepting()
    streamed = preferred(accept, ("application/json", SSE, NDJSON))
    if streamed != "application/json":
        caller.require(Scope.READ)
    upload = Upload(
        content_type=content_type,
        content_disposition=content_disposition,
        content_length=content_length,
        query=_single_values(request.query_params),
        chunks=body_chunks(request, ctx.settings.upload_idle_seconds),
        idempotency_key=idempotency_key,
    )
    receipt = await ctx.intake.receive(upload, caller.tenant, single=streamed != "application/json")
    headers = {"Idempotent-Replayed": "true"} if receipt.replayed else {}
    if len(receipt.items) > 1:
        return _several(receipt.items, ctx, headers)
    (document,) = receipt.items
    if isinstance(document, PagefleetError):
        raise document
    headers["Location"] = document_link(document.id, ctx.settings.root_path)
    if streamed != "application/json":
        position = event_order(Order.COMPLETED, ctx.journal, document, None, ctx.settings.root_path)
        return stream_events(ctx, document, position, streamed, headers)
    return await _accepted(document, ctx, prefer, headers)


async def _accepted(document: Document, ctx: Context, prefer: str | None, headers: dict[str, str]) -> Response:
    wait = preferred_wait(prefer, ctx.settings.max_wait_seconds)
    with suppress(StoreUnavailable):  # it was accepted all the same
        document = await wait_for_end(ctx, document, wait)
    status = 200 if wait is not None and document.state.ended else 202
    return JSONResponse(document_shape(document, ctx.settings.root_path), status, headers | applied(wait))


def _single_values(query: QueryParams) -> dict[str, str]:
    """Raises `OptionInvalid` for a parameter that is there twice."""
    values: dict[str, str] = {}
    for name, value in query.multi_items():
        if name in values:
            raise OptionInvalid(f"the option {name!r} is there twice", option=name)
        values[name] = value
    return values


def _sunset(document: Document) -> dict[str, str]:
    """When the document will be erased (RFC 8594)."""
    expires = document.expires_at
    return {} if expires is None else {"Sunset": format_datetime(expires.astimezone(UTC), usegmt=True)}


def _several(accepted: Sequence[Accepted], ctx: Context, headers: Mapping[str, str]) -> Response:
    if all(isinstance(item, PagefleetError) for item in accepted):
        first = accepted[0]
        assert isinstance(first, PagefleetError)
        status = first.status
    else:
        status = 202
    shapes = [
        {"error": item.problem()} if isinstance(item, PagefleetError) else document_shape(item, ctx.settings.root_path)
        for item in accepted
    ]
    return JSONResponse({"documents": shapes}, status, headers)


@router.get("")
async def index(
    ctx: Ctx,
    caller: Reader,
    state: Annotated[DocumentState | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_DOCUMENTS_LISTED)] = 50,
    cursor: Annotated[str | None, Query()] = None,
) -> Response:
    """Documents, newest first; the `Link` header leads to the rest."""
    documents, rest = await ctx.journal.list_documents(caller.tenant, state=state, limit=limit, cursor=cursor)
    headers = {"Cache-Control": "no-store"}
    if rest is not None:
        headers |= next_link(f"{ctx.settings.root_path}/documents", state=state, limit=str(limit), cursor=rest)
    shapes = [document_shape(document, ctx.settings.root_path) for document in documents]
    return JSONResponse({"documents": shapes}, headers=headers)


@router.get("/{document_id}", response_model=DocumentShape)
async def show(document_id: str, ctx: Ctx, caller: Reader, prefer: Annotated[str | None, Header()] = None) -> Response:
    """State, page counts and progress of a document. `Prefer: wait=N` holds the answer until it ends, N seconds."""
    wait = preferred_wait(prefer, ctx.settings.max_wait_seconds)
    document = await wait_for_end(ctx, await ctx.journal.document(document_id, caller.tenant), wait)
    outlook = await ctx.journal.outlook(document)
    headers = {"Cache-Control": "no-store", **applied(wait), **_sunset(document)}
    return JSONResponse(document_shape(document, ctx.settings.root_path, outlook), headers=headers)


@router.post("/{document_id}/retry", response_model=DocumentShape)
async def retry(document_id: str, ctx: Ctx, caller: Writer) -> Response:
    """Queue again what failed, and what was cancelled by `on_page_error=fail`; pages that were read stay read."""
    ctx.accepting()
    document = await ctx.journal.retry(document_id, caller.tenant)
    return JSONResponse(document_shape(document, ctx.settings.root_path), 202)


@router.post("/{document_id}/cancel", response_model=DocumentShape)
async def cancel(document_id: str, ctx: Ctx, caller: Writer) -> Response:
    """End the document now: pages that have not ended are cancelled, and aborted at their replicas.

    A document that has ended is left as it is.
    """
    document = await ctx.journal.cancel(document_id, caller.tenant)
    return JSONResponse(document_shape(document, ctx.settings.root_path))


@router.delete("/{document_id}", status_code=204)
async def delete(document_id: str, ctx: Ctx, caller: Writer) -> Response:
    """Cancel the document and erase its text and its bytes."""
    blob_key = await ctx.journal.delete(document_id, caller.tenant)
    await discard(ctx.blobs, blob_key)
    return Response(status_code=204)
