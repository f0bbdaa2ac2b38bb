"""`/documents/{id}/result`: the whole text."""

from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from app.api.auth import Reader
from app.api.context import Ctx
from app.api.json_text import json_text
from app.api.negotiation import preferred
from app.api.preferences import applied, preferred_wait, wait_for_end
from app.api.shapes import document_shape, page_shape
from app.documents.assembly import markdown_page, plain_page
from app.documents.records import Document, Page
from app.documents.states import DocumentState
from app.errors import DocumentCancelled, DocumentFailed, NotEnded, NotFound
from app.journal import Journal

router = APIRouter(prefix="/documents", tags=["documents"])

BATCH = 100
"""Pages held in memory at a time."""


class Format(StrEnum):
    MD = "md"
    JSON = "json"
    TXT = "txt"
    NDJSON = "ndjson"


_MEDIA_TYPES = {
    Format.MD: "text/markdown",
    Format.JSON: "application/json",
    Format.TXT: "text/plain",
    Format.NDJSON: "application/x-ndjson",
}


@router.get("/{document_id}/result", responses={200: {"content": {kind: {} for kind in _MEDIA_TYPES.values()}}})
async def result(
    document_id: str,
    ctx: Ctx,
    caller: Reader,
    format: Annotated[Format | None, Query()] = None,
    partial: Annotated[bool, Query(description="what is there, in every state")] = False,
    accept: Annotated[str | None, Header()] = None,
    prefer: Annotated[str | None, Header()] = None,
) -> Response:
    """The text of all pages in page order, by `Accept` or `format=`: Markdown, plain text, JSON or NDJSON."""
    if format is None:
        media_type = preferred(accept, tuple(_MEDIA_TYPES.values()))
        format = next(kind for kind, name in _MEDIA_TYPES.items() if name == media_type)
    wait = preferred_wait(prefer, ctx.settings.max_wait_seconds)
    document = await wait_for_end(ctx, await ctx.journal.document(document_id, caller.tenant), wait)
    if not partial:
        _check_readable(document)
    if format is Format.JSON:
        chunks = _json(ctx.journal, document, ctx.settings.root_path)
    else:
        chunks = _joined(ctx.journal, document, _PAGE_TEXT[format])
    media_type = _MEDIA_TYPES[format]
    if media_type.startswith("text/"):
        media_type += "; charset=utf-8"
    return StreamingResponse(chunks, headers=applied(wait), media_type=media_type)


def _check_readable(document: Document) -> None:
    """Raises `NotEnded`, `DocumentCancelled` or `DocumentFailed`."""
    if not document.state.ended:
        raise NotEnded(f"{document.counts.ended} of {document.counts.total} pages have ended", retry_after=2)
    if document.state is DocumentState.CANCELLED:
        raise DocumentCancelled()
    if document.state is DocumentState.FAILED:
        raise DocumentFailed(document.error["detail"] if document.error else "")


async def _pages(journal: Journal, document: Document) -> AsyncIterator[Page]:
    """Raises `NotFound` if the document is erased meanwhile: the download is cut, and doesn't look whole."""
    after, left = 0, document.counts.total
    while pages := await journal.pages(document.id, after=after, limit=BATCH):
        for page in pages:
            yield page
            after = page.number
        left -= len(pages)
    if left > 0:
        raise NotFound("the document was erased while it was read")


def _json_line(page: Page) -> str:
    return json_text(page_shape(page)) + "\n"


_PAGE_TEXT: dict[Format, Callable[[Page], str]] = {
    Format.MD: markdown_page,
    Format.TXT: plain_page,
    Format.NDJSON: _json_line,
}


async def _joined(journal: Journal, document: Document, text: Callable[[Page], str]) -> AsyncIterator[str]:
    """Pages that have not ended are left out, which happens with `partial` only."""
    async for page in _pages(journal, document):
        if page.state.ended:
            yield text(page)


async def _json(journal: Journal, document: Document, root_path: str) -> AsyncIterator[str]:
    head = json_text(document_shape(document, root_path))
    yield f'{{"schema": "pagefleet.result/1", "document": {head}, "pages": ['
    separator = "\n"
    async for page in _pages(journal, document):
        yield separator + json_text(page_shape(page))
        separator = ",\n"
    yield "\n]}\n"
