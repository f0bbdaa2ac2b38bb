"""HTTP/1.1 with the bounds that uvicorn's fast parser lacks: without a key nobody shall fill the memory."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.api.json_text import json_text
from app.api.problems import MEDIA_TYPE
from app.errors import HeadTooLarge

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers together, and trailers. What comes in one read, up to 256 KiB, is let pass."""
HEAD_SECONDS = 60.0
"""From a connection's begin, or a further request's, to the end of its headers; nginx's default."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Answers 431 to a head that is too long, and closes connections on which none comes to its end in time."""

    _outside_bytes = 0
    """Received since the last part of a body or the end of a head."""
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._outside_bytes += len(data)
        super().data_received(data)
        if self._outside_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_head_timer()

    def on_headers_complete(self) -> None:
        self._outside_bytes = 0
        self._stop_head_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._outside_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._outside_bytes = 0
        super().on_message_complete()

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()  # an answer is on its way: another can't be put into it
            return
        error = HeadTooLarge(f"the head of a request may have {MAX_HEAD_BYTES} bytes", limit=MAX_HEAD_BYTES)
        body = json_text(error.problem())
        lines = (
            f"HTTP/1.1 {error.status} Request Header Fields Too Large",
            f"Content-Type: {MEDIA_TYPE}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        self.transport.write("\r\n".join([*lines, "", body]).encode())
        self.transport.close()
