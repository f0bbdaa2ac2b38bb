"""The server's HTTP: chat completions, health, models, metrics."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio import to_thread
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.documents.models import CPU_MODEL
from app.replicas.cpu.chat import ChatAnswer, ChatRequest
from app.replicas.cpu.engine import Engine
from app.replicas.cpu.errors import BodyTooLarge, ChatError, error_body
from app.replicas.cpu.images import decode_image
from app.replicas.cpu.meters import Meters
from app.replicas.cpu.reader import PageReader

MAX_BODY_BYTES = 64 * 1024 * 1024
_CLIENT_CLOSED_REQUEST = 499  # nginx's status for a client that left; nobody receives it


def create_app(engine: Engine) -> Starlette:
    """The ASGI application over a loaded engine."""
    server = ChatServer(engine)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", server.chat, methods=["POST"]),
            Route("/v1/models", server.models),
            Route("/health", server.health),
            Route("/metrics", server.metrics),
        ],
        exception_handlers={ChatError: _chat_error, HTTPException: _http_error, ClientDisconnect: _client_gone},
    )


class ChatServer:
    """The endpoints, over one reader."""

    def __init__(self, engine: Engine) -> None:
        self._meters = Meters()
        self._reader = PageReader(engine, self._meters)

    async def chat(self, request: Request) -> Response:
        asked = ChatRequest.parse(await _body(request))
        image = await to_thread.run_sync(decode_image, asked.image_url)
        self._meters.steps.inc()
        answer = ChatAnswer(self._reader.fingerprint, request.headers.get("x-request-id"))
        if asked.stream:
            return StreamingResponse(self._events(asked, image, answer), media_type="text/event-stream")
        async with _cancelled_when_gone(request):
            page = await self._reader.read(image)
            self._meters.steps.inc()
            return JSONResponse(answer.whole(page.text, page.facts()))
        raise ClientDisconnect

    async def _events(self, asked: ChatRequest, image: bytes, answer: ChatAnswer) -> AsyncIterator[str]:
        yield _event(answer.opening())
        try:
            page = await self._reader.read(image)
        except ChatError as error:
            yield _event(error.body())
        else:
            for chunk in answer.chunks(page.text, page.facts()):
                yield _event(chunk)
            if asked.include_usage:
                yield _event(answer.usage())
            self._meters.steps.inc()
        yield "data: [DONE]\n\n"

    async def models(self, _: Request) -> Response:
        model = {"id": CPU_MODEL, "object": "model", "owned_by": "pagefleet", "root": CPU_MODEL, "parent": None}
        return JSONResponse({"object": "list", "data": [model]})

    async def health(self, _: Request) -> Response:
        return Response()

    async def metrics(self, _: Request) -> Response:
        return Response(self._meters.expose(), headers={"content-type": CONTENT_TYPE_LATEST})


async def _body(request: Request) -> bytes:
    """The whole body; the rest of one that is too large is not read."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLarge(f"the body is larger than {MAX_BODY_BYTES} bytes")
    return bytes(body)


@asynccontextmanager
async def _cancelled_when_gone(request: Request) -> AsyncIterator[None]:
    """Cancel what runs inside when the client closes its connection. For requests whose body has been read."""
    with anyio.CancelScope() as scope:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            scope.cancel()

        watcher = asyncio.create_task(watch())
        try:
            yield
        finally:
            watcher.cancel()


def _event(payload: dict[str, Any]) -> str:
    return f"data: {json.dumps(payload, ensure_ascii=False, separators=(',', ':'))}\n\n"


def _chat_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ChatError)
    return JSONResponse(error.body(), error.status)


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse(error_body(error.detail, "BadRequestError", error.status_code), error.status_code)


def _client_gone(_: Request, error: Exception) -> Response:
    return Response(status_code=_CLIENT_CLOSED_REQUEST)
