"""The wire side of event streams: server-sent events, NDJSON, and a response that can be cut."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.event_stream import StreamEvent
from app.api.json_text import json_text
from app.api.middleware import IS_HEAD

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""The second keeps nginx from holding events back."""


async def encode(events: AsyncIterator[StreamEvent], media_type: str) -> AsyncGenerator[bytes, None]:
    """Events as bytes of `media_type`, one item an event."""
    async for event in events:
        yield _sse(event) if media_type == SSE else _json_line(event.data)


def _sse(event: StreamEvent) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n" % (event.id.encode(), event.kind.encode(), _json_line(event.data))


def _json_line(data: dict[str, Any]) -> bytes:
    return json_text(data).encode() + b"\n"


HEARTBEATS = {SSE: b": heartbeat\n", NDJSON: _json_line({"event": "heartbeat"})}


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What keeps proxies from cutting a quiet stream."""

    chunk: bytes
    after_seconds: float
    """Silence that it breaks."""


class CuttableStream(Response):
    """A streamed body that ends without its last chunk when `cut` is set, so that clients see that it was cut.

    Heartbeats come from beside the chunks: they go on while the next chunk waits for a store that hangs.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        media_type: str,
        cut: asyncio.Event,
        heartbeat: Heartbeat,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self._chunks = chunks
        self._cut = cut
        self._heartbeat = heartbeat
        self._sent_at = 0.0
        self.init_headers({**_HEADERS, **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        complete = bool(scope.get(IS_HEAD))
        if not complete:
            complete = await self._send_chunks(receive, send)
        if complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_chunks(self, receive: Receive, send: Send) -> bool:
        """Whether all were sent: not when the client left or the stream was cut."""
        complete = False
        self._sent_at = time.monotonic()
        async with anyio.create_task_group() as group:

            async def stop_on_disconnect() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            async def stop_on_cut() -> None:
                await self._cut.wait()
                group.cancel_scope.cancel()

            group.start_soon(stop_on_disconnect)
            group.start_soon(stop_on_cut)
            group.start_soon(self._break_silence, send)
            async with aclosing(self._chunks) as chunks:
                async for chunk in chunks:
                    await self._send_chunk(send, chunk)
            complete = True
            group.cancel_scope.cancel()
        return complete

    async def _break_silence(self, send: Send) -> None:
        while True:
            left = self._sent_at + self._heartbeat.after_seconds - time.monotonic()
            if left > 0:
                await asyncio.sleep(left)
            else:
                await self._send_chunk(send, self._heartbeat.chunk)

    async def _send_chunk(self, send: Send, chunk: bytes) -> None:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        self._sent_at = time.monotonic()
