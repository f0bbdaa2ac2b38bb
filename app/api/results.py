"""`/documents/{id}/result`: the whole text."""

import json
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from app.api.context import TENANT, Ctx
from app.api.negotiation import preferred
from app.api.shapes import document_shape, page_shape
from app.documents.assembly import markdown_page
from app.documents.records import Document, Page
from app.documents.states import DocumentState
from app.errors import DocumentCancelled, DocumentFailed, NotEnded
from app.journal import Journal

router = APIRouter(prefix="/documents", tags=["documents"])

BATCH = 100
"""Pages held in memory at a time."""
RETRY_AFTER_SECONDS = 2


class Format(StrEnum):
    MD = "md"
    JSON = "json"


_MEDIA_TYPES = {Format.MD: "text/markdown", Format.JSON: "application/json"}


@router.get("/{document_id}/result", responses={200: {"content": {kind: {} for kind in _MEDIA_TYPES.values()}}})
async def result(
    document_id: str,
    ctx: Ctx,
    format: Annotated[Format | None, Query()] = None,
    accept: Annotated[str | None, Header()] = None,
) -> Response:
    """The text of all pages in page order: Markdown, or JSON by `Accept` or `format=`."""
    if format is None:
        media_type = preferred(accept, tuple(_MEDIA_TYPES.values()))
        format = next(kind for kind, name in _MEDIA_TYPES.items() if name == media_type)
    document = await ctx.journal.document(document_id, TENANT)
    _check_readable(document)
    if format is Format.MD:
        chunks = _markdown(ctx.journal, document)
        return StreamingResponse(chunks, media_type="text/markdown; charset=utf-8")
    return StreamingResponse(_json(ctx.journal, document, ctx.settings.root_path), media_type="application/json")


def _check_readable(document: Document) -> None:
    """Raises `NotEnded`, `DocumentCancelled` or `DocumentFailed`."""
    if not document.state.ended:
        raise NotEnded(
            f"{document.counts.ended} of {document.counts.total} pages have ended", retry_after=RETRY_AFTER_SECONDS
        )
    if document.state is DocumentState.CANCELLED:
        raise DocumentCancelled()
    if document.state is DocumentState.FAILED:
        raise DocumentFailed(document.error["detail"] if document.error else "")


async def _pages(journal: Journal, document_id: str) -> AsyncIterator[Page]:
    after = 0
    while pages := await journal.pages(document_id, after=after, limit=BATCH):
        for page in pages:
            yield page
            after = page.number


async def _markdown(journal: Journal, document: Document) -> AsyncIterator[str]:
    async for page in _pages(journal, document.id):
        yield markdown_page(page)


async def _json(journal: Journal, document: Document, root_path: str) -> AsyncIterator[str]:
    head = json.dumps(document_shape(document, root_path), ensure_ascii=False)
    yield f'{{"schema": "pagefleet.result/1", "document": {head}, "pages": ['
    separator = "\n"
    async for page in _pages(journal, document.id):
        yield separator + json.dumps(page_shape(page), ensure_ascii=False)
        separator = ",\n"
    yield "\n]}\n"
