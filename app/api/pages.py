"""`/documents/{id}/pages` and `/source`: facts and text by page, a page as an image, the bytes as uploaded."""

import base64
from contextlib import AsyncExitStack
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.api.auth import Reader
from app.api.context import Ctx
from app.api.links import next_link
from app.api.negotiation import preferred
from app.api.shapes import PageShape, document_link, page_shape
from app.documents.page_ranges import LAST_PAGE_NUMBER
from app.documents.records import ImageSpec

router = APIRouter(prefix="/documents", tags=["documents"])

MAX_PAGES_LISTED = 1000
IMAGE_PIXELS = 1288
MAX_IMAGE_PIXELS = 8192


@router.get("/{document_id}/pages")
async def pages(
    document_id: str,
    ctx: Ctx,
    caller: Reader,
    after: Annotated[int, Query(ge=0, le=LAST_PAGE_NUMBER, description="page number after which to begin")] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGES_LISTED)] = 100,
) -> Response:
    """Pages by number, in every state; the `Link` header leads to the rest."""
    await ctx.journal.document(document_id, caller.tenant)
    found = await ctx.journal.pages(document_id, after=after, limit=limit + 1)
    headers = {"Cache-Control": "no-store"}
    if len(found) > limit:
        path = f"{document_link(document_id, ctx.settings.root_path)}/pages"
        headers |= next_link(path, after=str(found[limit - 1].number), limit=str(limit))
    return JSONResponse({"pages": [page_shape(page) for page in found[:limit]]}, headers=headers)


@router.get("/{document_id}/pages/{number}", response_model=PageShape)
async def page(document_id: str, number: int, ctx: Ctx, caller: Reader) -> Response:
    """Facts and text of one page; `number` is that in the original file."""
    found = await ctx.journal.page(document_id, number, caller.tenant)
    return JSONResponse(page_shape(found), headers={"Cache-Control": "no-store"})


@router.get("/{document_id}/pages/{number}/image", responses={200: {"content": {"image/jpeg": {}, "image/png": {}}}})
async def image(
    document_id: str,
    number: int,
    ctx: Ctx,
    caller: Reader,
    longest_side: Annotated[int, Query(ge=16, le=MAX_IMAGE_PIXELS, description="pixels")] = IMAGE_PIXELS,
    accept: Annotated[str | None, Header()] = None,
) -> Response:
    """The page as the replicas see it, drawn now: JPEG, or PNG by `Accept`."""
    media_type = preferred(accept, ("image/jpeg", "image/png"))
    document = await ctx.journal.document(document_id, caller.tenant)
    await ctx.journal.page(document_id, number, caller.tenant)
    spec = ImageSpec(longest_side, media_type)
    async with ctx.blobs.local(document.blob_key) as path:
        drawing = await ctx.rendering.draw(path, document.media_type, number, spec, document.password)
    return Response(base64.b64decode(drawing.image_base64), media_type=media_type)


class _BlobResponse(FileResponse):
    """A blob's bytes, by ranges too; its local copy is let go when they are sent, or the client is gone."""

    pinned: AsyncExitStack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self.pinned:
            await super().__call__(scope, receive, send)


@router.get("/{document_id}/source", response_class=FileResponse)
async def source(document_id: str, ctx: Ctx, caller: Reader) -> Response:
    """The uploaded bytes, with ranges."""
    document = await ctx.journal.document(document_id, caller.tenant)
    async with AsyncExitStack() as stack:
        path = await stack.enter_async_context(ctx.blobs.local(document.blob_key))
        response = _BlobResponse(
            path,
            media_type=document.media_type,
            filename=document.filename,
            # What was uploaded by one person must not run in the browser of another.
            headers={"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"},
        )
        response.pinned = stack.pop_all()
    return response
