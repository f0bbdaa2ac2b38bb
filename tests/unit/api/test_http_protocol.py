"""The bounds of the HTTP server, over real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from app.api import http_protocol
from app.api.http_protocol import MAX_HEAD_BYTES, BoundedHttpProtocol
from tests.waiting import until

DEADLINE_SECONDS = 10
PIECE = b"x" * 4096


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
"""What a Java client sends with every request."""

left = 0
"""Clients of `/forever` that were seen to leave."""


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Tells how long the body is; `/forever` answers without end."""
    if scope["path"] == "/forever":
        await _forever(receive, send)
    else:
        body = await Request(scope, receive).body()
        await PlainTextResponse(str(len(body)))(scope, receive, send)


async def _forever(receive: Receive, send: Send) -> None:
    global left
    await send({"type": "http.response.start", "status": 200, "headers": []})
    async with asyncio.TaskGroup() as group:
        beats = group.create_task(_beat(send))
        while (await receive())["type"] != "http.disconnect":
            pass
        beats.cancel()
    left += 1


async def _beat(send: Send) -> None:
    while True:
        await send({"type": "http.response.body", "body": b".", "more_body": True})
        await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
async def port() -> AsyncIterator[int]:
    config = uvicorn.Config(application, port=0, http=BoundedHttpProtocol, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, *pieces: bytes) -> None:
        """Each piece in a packet of its own; those that come too late are lost."""
        for piece in pieces:
            if not self._writer.is_closing():
                self._writer.write(piece)
                await asyncio.sleep(0)

    async def answer(self) -> tuple[bytes, bytes]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            head = await self._reader.readuntil(b"\r\n\r\n")
            size = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
            return head, await self._reader.readexactly(int(size.split(b":")[1]))

    async def closed(self) -> bytes:
        """What came until the server has closed the connection."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._reader.read()

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
async def connection(port: int) -> AsyncIterator[Connection]:
    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
    yield connection
    connection.close()


async def test_usual_heads_and_large_bodies_pass_again_and_again_on_one_connection(connection: Connection) -> None:
    for _ in range(4):
        head = b"POST / HTTP/1.1\r\nHost: a\r\nX-Long: " + 7 * PIECE + b"\r\nContent-Length: %d\r\n\r\n"
        await connection.send(head % (64 * len(PIECE)), *[PIECE] * 64)
        _, body = await connection.answer()
        assert int(body) == 64 * len(PIECE) > 2 * MAX_HEAD_BYTES


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET / HTTP/1.1\r\nX-Long: ", PIECE),
        (b"GET / HTTP/1.1\r\n", b"".join(b"X-%d: y\r\n" % number for number in range(400))),
        (b"GET /", PIECE),
    ],
    ids=["one header", "many headers", "the path"],
)
async def test_a_head_that_does_not_end_is_refused(connection: Connection, start: bytes, piece: bytes) -> None:
    await connection.send(start, *[piece] * (MAX_HEAD_BYTES // len(piece) + 1))
    head, body = await connection.answer()
    assert head.startswith(b"HTTP/1.1 431 ")
    assert (json.loads(body)["code"], json.loads(body)["limit"]) == ("head_too_large", MAX_HEAD_BYTES)
    assert await connection.closed() == b""


async def test_trailers_without_end_break_the_connection(connection: Connection) -> None:
    await connection.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Long: ")
    await connection.send(*[PIECE] * 128)  # more than one read may take besides
    with pytest.raises(ConnectionResetError):
        await connection.closed()


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nX-Slow: "], ids=["silence", "half a head"])
async def test_a_head_that_takes_too_long_closes_the_connection(
    port: int, begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
    await connection.send(begin)
    assert await connection.closed() == b""
    connection.close()


async def test_a_body_may_take_longer_than_a_head(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
    await connection.send(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na")
    await asyncio.sleep(0.2)
    await connection.send(b"b")
    assert (await connection.answer())[1] == b"2"
    connection.close()


@pytest.mark.parametrize("offer", [OFFER, OFFER.replace(b"h2c", b"websocket")], ids=["h2c", "websocket"])
@pytest.mark.parametrize("step", [1, 64, 100_000])
async def test_another_protocol_that_is_offered_is_declined_and_the_body_read(
    connection: Connection, offer: bytes, step: int
) -> None:
    body = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    requests = (
        b"POST / HTTP/1.1\r\nHost: a\r\n" + offer + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        b"POST / HTTP/1.1\r\n" + offer + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
        b"GET / HTTP/1.1\r\nHost: a\r\n" + offer + b"\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 0\r\n" + offer + b"\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
    )
    together = b"".join(requests)
    await connection.send(*(together[start : start + step] for start in range(0, len(together), step)))

    answers = [await connection.answer() for _ in requests]
    assert [head.split()[1] for head, _ in answers] == [b"200"] * len(requests)
    assert [int(length) for _, length in answers] == [len(body), len(body), 0, 0, 3]


async def test_who_leaves_in_the_middle_of_an_answer_is_noticed_though_another_request_waits(
    connection: Connection,
) -> None:
    before = left
    await connection.send(b"GET /forever HTTP/1.1\r\nHost: a\r\n\r\n")
    await asyncio.sleep(0.1)
    await connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await asyncio.sleep(0.1)
    connection.close()
    await until(lambda: left == before + 1)
