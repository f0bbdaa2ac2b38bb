import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
from starlette.types import Message

from app.api.event_stream import StreamEvent
from app.api.middleware import IS_HEAD
from app.api.streaming import HEARTBEATS, NDJSON, SSE, CuttableStream, Heartbeat, encode
from app.documents.states import EventKind
from tests.unit.api.asgi import Exchange, scope_of
from tests.waiting import until

EVENT = StreamEvent("0.12", EventKind.PAGE, {"seq": 7, "text": "first line\nsecond: Prüfung\r\n"})


async def told(*events: StreamEvent) -> AsyncIterator[StreamEvent]:
    for event in events:
        yield event


async def test_a_server_sent_event_has_its_id_its_kind_and_one_line_of_data() -> None:
    (chunk,) = [chunk async for chunk in encode(told(EVENT), SSE)]
    lines = chunk.decode().split("\n")
    assert lines[:2] == ["id: 0.12", "event: page"]
    assert json.loads(lines[2].removeprefix("data: ")) == EVENT.data
    assert lines[3:] == ["", ""]


async def test_ndjson_is_one_line_an_event() -> None:
    (chunk,) = [chunk async for chunk in encode(told(EVENT), NDJSON)]
    assert chunk.count(b"\n") == 1
    assert chunk.endswith(b"\n")
    assert json.loads(chunk) == EVENT.data


def test_a_heartbeat_is_a_comment_or_an_event_of_its_own() -> None:
    assert HEARTBEATS[SSE] == b": heartbeat\n"
    assert json.loads(HEARTBEATS[NDJSON]) == {"event": "heartbeat"}
    assert HEARTBEATS[NDJSON].endswith(b"\n")


class Chunks:
    """A body that gives `count` chunks and then is over, waits for ever, or fails."""

    def __init__(self, count: int, then: Exception | None = None, *, endless: bool = False) -> None:
        self.closed = False
        self.begun = False
        self._count = count
        self._then = then
        self._endless = endless

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        self.begun = True
        try:
            for number in range(self._count):
                yield b"%d" % number
            if self._endless:
                await asyncio.Event().wait()
            if self._then is not None:
                raise self._then
        finally:
            self.closed = True


def stream(chunks: Chunks, cut: asyncio.Event | None = None, heartbeat_seconds: float = 60) -> CuttableStream:
    return CuttableStream(chunks(), SSE, cut or asyncio.Event(), Heartbeat(b"-", heartbeat_seconds))


async def test_a_stream_that_is_over_ends_in_order() -> None:
    chunks, exchange = Chunks(3), Exchange()
    await exchange.run(stream(chunks), scope_of())
    assert (exchange.status, exchange.body, exchange.complete) == (200, b"012", True)
    assert exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert exchange.headers["cache-control"] == "no-store"
    assert chunks.closed


async def test_a_stream_that_is_cut_stops_without_its_end() -> None:
    chunks, exchange, cut = Chunks(2, endless=True), Exchange(), asyncio.Event()
    running = asyncio.create_task(exchange.run(stream(chunks, cut), scope_of()))
    await until(lambda: exchange.body == b"01" if exchange.sent else False)
    cut.set()
    await asyncio.wait_for(running, 10)
    assert not exchange.complete
    assert chunks.closed


async def test_silence_is_filled_with_heartbeats_whatever_the_next_chunk_waits_for() -> None:
    chunks, exchange = Chunks(2, endless=True), Exchange()
    running = asyncio.create_task(exchange.run(stream(chunks, heartbeat_seconds=0.01), scope_of()))
    await until(lambda: exchange.body.startswith(b"01---") if exchange.sent else False)
    exchange.left.set()
    await asyncio.wait_for(running, 10)
    assert chunks.closed


async def test_a_stream_whose_client_has_gone_stops() -> None:
    chunks, exchange = Chunks(2, endless=True), Exchange()
    running = asyncio.create_task(exchange.run(stream(chunks), scope_of()))
    await until(lambda: exchange.body == b"01" if exchange.sent else False)
    exchange.left.set()
    await asyncio.wait_for(running, 10)
    assert not exchange.complete
    assert chunks.closed


async def test_a_client_that_does_not_read_does_not_keep_a_stream_from_being_cut() -> None:
    class SlowReader(Exchange):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

    chunks, exchange, cut = Chunks(1000), SlowReader(), asyncio.Event()
    response = stream(chunks, cut)  # kept: its end must not be left to the garbage collector
    running = asyncio.create_task(exchange.run(response, scope_of()))
    await until(lambda: len(exchange.sent) == 2)
    cut.set()
    await asyncio.wait_for(running, 10)
    assert exchange.body == b"0"
    assert chunks.closed


async def test_a_stream_that_fails_does_not_look_complete() -> None:
    chunks, exchange = Chunks(1, RuntimeError("broken")), Exchange()
    with pytest.raises(ExceptionGroup) as caught:
        await exchange.run(stream(chunks), scope_of())
    assert caught.group_contains(RuntimeError, match="broken")
    assert (exchange.body, exchange.complete) == (b"0", False)


async def test_the_head_of_a_stream_is_complete_at_once_and_reads_nothing() -> None:
    chunks, exchange = Chunks(3, endless=True), Exchange()
    async with asyncio.timeout(10):
        await exchange.run(stream(chunks), {**scope_of(), IS_HEAD: True})
    assert (exchange.body, exchange.complete) == (b"", True)
    assert not chunks.begun
