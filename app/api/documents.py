"""`/documents`: upload, state, cancel, delete."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import JSONResponse, Response

from app.api.context import TENANT, Context, Ctx
from app.api.shapes import DocumentShape, document_shape
from app.documents.records import Document
from app.errors import PagefleetError
from app.intake import Upload

router = APIRouter(prefix="/documents", tags=["documents"])

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
    content_type: Annotated[str | None, Header()] = None,
    content_disposition: Annotated[str | None, Header()] = None,
    content_length: Annotated[int | None, Header()] = None,
) -> Response:
    """Take one file or several: multipart field `file`, or the body itself. Options are form fields or the query's.

    Answered when the file is stored and inspected: what can't be read is refused at once. With several files the
    answer is `{"documents": [document or {"error": problem}, …]}`.
    """
    ctx.accepting()
    upload = Upload(
        content_type=content_type,
        content_disposition=content_disposition,
        content_length=content_length,
        query=dict(request.query_params),
        chunks=request.stream(),
    )
    accepted = await ctx.intake.receive(upload, TENANT)
    return _one(accepted[0], ctx) if len(accepted) == 1 else _several(accepted, ctx)


def _one(accepted: Document | PagefleetError, ctx: Context) -> Response:
    if isinstance(accepted, PagefleetError):
        raise accepted
    shape = document_shape(accepted, ctx.settings.root_path)
    return JSONResponse(shape, 202, {"Location": shape["links"]["self"]})


def _several(accepted: list[Document | PagefleetError], ctx: Context) -> Response:
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
    return JSONResponse({"documents": shapes}, status)


@router.get("/{document_id}", response_model=DocumentShape)
async def show(document_id: str, ctx: Ctx) -> Response:
    """State, page counts and progress of a document."""
    document = await ctx.journal.document(document_id, TENANT)
    return JSONResponse(document_shape(document, ctx.settings.root_path), headers={"Cache-Control": "no-store"})


@router.post("/{document_id}/cancel", response_model=DocumentShape)
async def cancel(document_id: str, ctx: Ctx) -> Response:
    """End the document now: pages that have not ended are cancelled, and aborted at their replicas.

    A document that has ended is left as it is.
    """
    document = await ctx.journal.cancel(document_id, TENANT)
    return JSONResponse(document_shape(document, ctx.settings.root_path))


@router.delete("/{document_id}", status_code=204)
async def delete(document_id: str, ctx: Ctx) -> Response:
    """Cancel the document and erase its text and its bytes."""
    blob_key = await ctx.journal.delete(document_id, TENANT)
    await ctx.blobs.delete(blob_key)
    return Response(status_code=204)
