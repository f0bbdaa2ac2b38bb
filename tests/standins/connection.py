"""HTTP/1.1 on one connection of a stand-in."""

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httptools

from tests.standins.replies import Fault, Reply

if TYPE_CHECKING:
    from tests.standins.server import StandIn


class Connection(asyncio.Protocol):
    """One kept-alive connection; one request at a time (no pipelining).

    Parts of a stream are held back until `flush`: a system call for each would be most of a call's cost.
    """

    def __init__(self, standin: "StandIn") -> None:
        self._standin = standin
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._pending: list[bytes] = []
        self._reply: Reply | None = None
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self.responding = False
        """Whether a stream has begun that may still be written to."""
        self.was_reset = False
        self.cut_next = False
        """Reset the connection when its next request comes."""

    def take_body(self) -> bytes:
        body = b"".join(self._body)
        self._body = []
        return body

    def send(
        self,
        status: int,
        content: str | bytes | Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        """A whole response: JSON, or text or bytes as they are."""
        if isinstance(content, Mapping):
            body, kind = json.dumps(content).encode(), "application/json"
        else:
            body, kind = content.encode() if isinstance(content, str) else content, "text/plain"
        self._head(status, {"Content-Type": media_type or kind, "Content-Length": str(len(body)), **(headers or {})})
        self._pending.append(body)
        self.flush()

    def begin_stream(self, headers: Mapping[str, str]) -> None:
        self.responding = True
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **headers})

    def event(self, data: str | Mapping[str, Any]) -> None:
        self._chunk(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())

    def comment(self) -> None:
        self._chunk(b": still here\n\n")

    def end_stream(self) -> None:
        self.responding = False
        self._pending.append(b"0\r\n\r\n")
        self.flush()

    def flush(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._pending))
        self._pending = []

    def abandon(self) -> None:
        """The request needs no further work: it has been answered otherwise."""
        if self._task is not None:
            self._task.cancel()

    def reset(self) -> None:
        """RST instead of FIN, as a killed process or a dropped NAT entry causes it."""
        self.responding, self.was_reset = False, True
        if self._transport is not None:
            sock: socket.socket = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {headers[name]}" for name in headers)]
        self._pending.append("\r\n".join([*lines, "", ""]).encode())

    def _chunk(self, data: bytes) -> None:
        self._pending.append(b"%x\r\n%b\r\n" % (len(data), data))

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._standin.connected(self)

    def data_received(self, data: bytes) -> None:
        if not self.was_reset:
            self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._standin.disconnected(self)
        if self._task is not None:
            self._task.cancel()

    # httptools.HTTPProtocol

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body = b"", {}, []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._reply = self._standin.expect(*self._target(), self._headers)
        if self.cut_next or (self._reply is not None and self._reply.fault is Fault.RESET_EARLY):
            self.reset()

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if not self.was_reset:
            respond = self._standin.respond(self, *self._target(), self._headers, self._reply)
            self._task = asyncio.create_task(respond)

    def _target(self) -> tuple[str, str]:
        return self._parser.get_method().decode(), self._url.decode().partition("?")[0]
