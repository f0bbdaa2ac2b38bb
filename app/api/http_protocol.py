"""HTTP/1.1, and nothing else, with the bounds that uvicorn lacks: without a key nobody shall fill the memory."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.api.http_parser import DecliningParser, framing
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
    _running: RequestResponseCycle | None = None
    """The request that is being answered; `cycle` is the last one received."""
    _declined = False
    """An offer of another protocol was declined, and the head comes once more without it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.parser = DecliningParser(self, self._decline)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        if self._running is not None:  # uvicorn tells the last request only, which may wait behind this one
            self._running.disconnected = True
            self._running.message_event.set()
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
        if self._declined:
            self._declined = False
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._outside_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._outside_bytes = 0
        if not (self.parser.should_upgrade() and framing(self.headers)):  # else the body is still to come
            super().on_message_complete()

    def _decline(self) -> bytes:
        body = framing(self.headers)
        self._declined = bool(body)
        return body

    def _should_upgrade(self) -> bool:
        return False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

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
