"""A scripted stand-in for an OCR replica: a real HTTP server with slots, service times and faults to order.

In a test, on a free port, in the test's own loop::

    async with StandIn(slots=2, seconds=0.05) as replica:
        replica.plan(Reply(status=500), Reply(fault=Fault.RESET))   # the next two calls; then good answers again
        ...                                                         # talk to replica.url
        assert replica.peak == 2 and replica.calls[0].image == jpeg

As a process, for throughput runs and for tests that kill it: `python -m tests.standin --port 0 --slots 8 --seconds
0.25` prints `standin listening on http://HOST:PORT`; `GET /standin` gives its counters as JSON.

It speaks `/health`, `/v1/models`, `/metrics` and `/v1/chat/completions` in the words of vLLM 0.32: the chunks of a
stream, the bodies of its errors and the labels of its metrics are those seen there. Calls over its slots wait in line,
as they do in an engine. A connection that the client closes ends its call at once.
"""

import argparse
import asyncio
import base64
import hashlib
import json
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Self

import httptools

from app.lifeline import die_with_parent


class Fault(StrEnum):
    """What goes wrong with a call. All but `RESET` come after the call's service time."""

    RESET = "reset"
    """The connection is reset before any byte, at once and without taking a slot."""
    CUT = "cut"
    """The stream stops in the middle: the connection is reset after half of the text."""
    HANG = "hang"
    """No byte ever comes; the step counter does not move for it."""
    HANG_MIDWAY = "hang_midway"
    """Half of the text comes, then nothing; the step counter does not move for it."""
    IN_BAND_ERROR = "in_band_error"
    """HTTP 200, half of the text, then `data: {"error": …}` and `[DONE]`, like a vLLM whose engine died."""
    MALFORMED = "malformed"
    """HTTP 200 and an event that is not JSON."""
    NO_FINISH = "no_finish"
    """The whole text, then the end of the stream without `finish_reason` and `[DONE]`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the stand-in does with one chat-completions call."""

    text: str | None = None
    """Text of the answer; None: what the stand-in's `text` says."""
    seconds: float | None = None
    """Service time; None: the stand-in's `seconds`."""
    status: int = 200
    """Anything but 200 is an error in vLLM's shape, after the service time."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further response headers, such as `Retry-After`."""
    finish_reason: str = "stop"
    chunks: int = 2
    """Parts that the text is streamed in."""
    chunk_seconds: float = 0.0
    """Pause before each part: a slow stream."""
    fault: Fault | None = None


@dataclass(slots=True, eq=False)
class Call:
    """One chat-completions call as it arrived. What costs time (JSON, the image) is found only when asked for."""

    number: int
    """Place in the order of arrival, from 1."""
    headers: dict[str, str]
    body: bytes
    """Empty after the call where the stand-in does not keep bodies."""
    size: int
    """Bytes of the body."""
    disconnected: bool = False
    """The client closed the connection before the answer was complete."""

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def streamed(self) -> bool:
        return b'"stream": true' in self.body or b'"stream":true' in self.body

    @property
    def image(self) -> bytes:
        """Bytes of the first image; empty if there is none."""
        return base64.b64decode(self.body.partition(b";base64,")[2].partition(b'"')[0])

    @property
    def image_sha256(self) -> str:
        return hashlib.sha256(self.image).hexdigest()


def name_call(call: Call) -> str:
    """The default text of an answer: names the call and its image."""
    return f"Call {call.number} read image {call.image_sha256[:16]}."


class StandIn:
    """The server. All public attributes but the slots and the address may be changed at any time."""

    def __init__(
        self,
        *,
        slots: int = 8,
        seconds: float = 0.0,
        model: str = "standin",
        text: Callable[[Call], str] = name_call,
        host: str = "127.0.0.1",
        port: int = 0,
        states_slots: bool = True,
        keep_bodies: bool = True,
    ) -> None:
        """`seconds` is the service time of a call; `states_slots` shows `pagefleet_replica_slots` in `/metrics`."""
        self.slots = slots
        self.seconds = seconds
        self.model = model
        self.text = text
        self.host = host
        self.port = port
        self.states_slots = states_slots
        self.keep_bodies = keep_bodies
        self.health_status = 200
        """Status of `/health`; 0: the probe is accepted and never answered."""
        self.models_status = 200
        """Status of `/v1/models`."""
        self.foreign = 0
        """Requests of other clients that `/metrics` shows as running."""
        self.calls: list[Call] = []
        self.present = 0
        """Calls that are here now: running, or waiting for a slot."""
        self.running = 0
        self.peak = 0
        """Most calls that were here at once."""
        self.disconnects = 0
        """Calls whose client left before the end."""
        self._connections: set[_Connection] = set()
        self._gone = asyncio.Event()
        self._plan: deque[Reply] = deque()
        self._always: Reply | None = None
        self._slots = asyncio.Semaphore(slots)
        self._stuck = 0
        self._steps = 0
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def plan(self, *replies: Reply) -> None:
        """Answer the next calls like this, in order of arrival; before and after them as `always` says."""
        self._plan.extend(replies)

    def always(self, reply: Reply | None) -> None:
        """Answer every call like this; None: with a good answer again."""
        self._always = reply

    async def start(self) -> None:
        """Listen. After a `stop` the port is the same as before."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Like `kill -9`: the port is closed and every connection reset, whatever was going on."""
        if self._server is not None:
            self._server.close()
            for connection in list(self._connections):
                connection.reset()
            await self._server.wait_closed()
        if self._connections:
            self._gone.clear()
            await self._gone.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def connected(self, connection: "_Connection") -> None:
        self._connections.add(connection)

    def disconnected(self, connection: "_Connection") -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._gone.set()

    async def respond(self, connection: "_Connection", method: str, path: str, headers: dict[str, str]) -> None:
        body = connection.take_body()
        if (method, path) == ("POST", "/v1/chat/completions"):
            call = Call(len(self.calls) + 1, headers, body, len(body))
            self.calls.append(call)
            await self._serve(connection, call)
        elif method == "GET" and path == "/health":
            await self._health(connection)
        elif method == "GET" and path == "/v1/models":
            models = {"object": "list", "data": [{"id": self.model, "object": "model"}]}
            connection.send(self.models_status, models if self.models_status == 200 else _error(self.models_status))
        elif method == "GET" and path == "/metrics":
            connection.send(200, self._metrics())
        elif method == "GET" and path == "/standin":
            connection.send(200, {"calls": len(self.calls), "peak": self.peak, "disconnects": self.disconnects})
        else:
            connection.send(404, _error(404, "Not Found"))

    async def _health(self, connection: "_Connection") -> None:
        if self.health_status == 0:
            await asyncio.Event().wait()
        connection.send(self.health_status, "")

    def _metrics(self) -> str:
        self._steps += self.running - self._stuck  # an engine with work steps all the time
        labels = f'{{engine="0",model_name="{self.model}"}}'
        lines = [
            "# TYPE vllm:num_requests_running gauge",
            f"vllm:num_requests_running{labels} {float(self.running + self.foreign)}",
            "# TYPE vllm:num_requests_waiting gauge",
            f"vllm:num_requests_waiting{labels} {float(self.present - self.running)}",
            "# TYPE vllm:iteration_tokens_total histogram",
            f'vllm:iteration_tokens_total_bucket{{engine="0",le="+Inf",model_name="{self.model}"}} {self._steps}',
            f"vllm:iteration_tokens_total_count{labels} {self._steps}",
            f"vllm:iteration_tokens_total_sum{labels} {self._steps}",
        ]
        if self.states_slots:
            lines += ["# TYPE pagefleet_replica_slots gauge", f"pagefleet_replica_slots {self.slots}"]
        return "\n".join(lines) + "\n"

    async def _serve(self, connection: "_Connection", call: Call) -> None:
        reply = self._plan.popleft() if self._plan else self._always or Reply()
        if reply.fault is Fault.RESET:
            connection.reset()
            return
        self.present += 1
        self.peak = max(self.peak, self.present)
        try:
            async with self._slots:
                self.running += 1
                try:
                    await self._answer(connection, call, reply)
                finally:
                    self.running -= 1
        except asyncio.CancelledError:
            if not connection.was_reset:
                call.disconnected = True
                self.disconnects += 1
            raise
        finally:
            self.present -= 1
            if not self.keep_bodies:
                call.body = b""

    async def _answer(self, connection: "_Connection", call: Call, reply: Reply) -> None:
        end = time.monotonic() + (self.seconds if reply.seconds is None else reply.seconds)
        text = self.text(call) if reply.text is None else reply.text  # hashing the image is part of the service time
        await asyncio.sleep(end - time.monotonic())
        if reply.fault is Fault.HANG:
            await self._hang()
        if reply.status != 200:
            connection.send(reply.status, _error(reply.status), reply.headers)
        elif not call.streamed:
            connection.send(200, self._completion(call, text, reply), reply.headers)
        else:
            await self._stream(connection, call, text, reply)

    async def _stream(self, connection: "_Connection", call: Call, text: str, reply: Reply) -> None:
        connection.begin_stream(reply.headers)
        connection.event(self._chunk(call, {"role": "assistant", "content": ""}))
        if reply.fault is Fault.MALFORMED:
            connection.event('{"choices": [')
        parts = _split(text, reply.chunks)
        for number, part in enumerate(parts):
            if number >= len(parts) / 2:
                await self._break(connection, reply.fault)
                if not connection.responding:
                    return
            await asyncio.sleep(reply.chunk_seconds)
            connection.event(self._chunk(call, {"content": part}))
        if reply.fault is not Fault.NO_FINISH:
            connection.event(self._chunk(call, {}, reply.finish_reason))
            connection.event(self._chunk(call, None, usage=_usage(text)))
            connection.event("[DONE]")
        connection.end_stream()

    async def _break(self, connection: "_Connection", fault: Fault | None) -> None:
        """What goes wrong in the middle of a stream, if anything does."""
        match fault:
            case Fault.CUT:
                await asyncio.sleep(0.01)  # what was written has reached the client: the reset does not erase it
                connection.reset()
            case Fault.HANG_MIDWAY:
                await self._hang()
            case Fault.IN_BAND_ERROR:
                connection.event(_error(500, "EngineCore encountered an issue."))
                connection.event("[DONE]")
                connection.end_stream()

    async def _hang(self) -> None:
        self._stuck += 1
        try:
            await asyncio.Event().wait()
        finally:
            self._stuck -= 1

    def _chunk(
        self,
        call: Call,
        delta: dict[str, str] | None,
        finish_reason: str | None = None,
        usage: dict[str, int] | None = None,
    ) -> dict[str, Any]:
        self._steps += 1
        return {
            "id": f"chatcmpl-{call.number}",
            "object": "chat.completion.chunk",
            "model": self.model,
            "choices": [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
            "usage": usage,
        }

    def _completion(self, call: Call, text: str, reply: Reply) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        return {
            "id": f"chatcmpl-{call.number}",
            "object": "chat.completion",
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
            "usage": _usage(text),
        }


def _split(text: str, parts: int) -> list[str]:
    length = max(1, -(-len(text) // parts))
    return [text[start : start + length] for start in range(0, len(text), length)] or [""]


def _usage(text: str) -> dict[str, int]:
    return {"prompt_tokens": 100, "completion_tokens": len(text.split()), "total_tokens": 100 + len(text.split())}


def _error(status: int, message: str | None = None) -> dict[str, Any]:
    phrase = HTTPStatus(status).phrase
    return {"error": {"message": message or phrase, "type": phrase.replace(" ", ""), "param": None, "code": status}}


class _Connection(asyncio.Protocol):
    """One kept-alive connection; one request at a time (no pipelining)."""

    def __init__(self, standin: StandIn) -> None:
        self._standin = standin
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self.responding = False
        """Whether the response to the current request may still be written to."""
        self.was_reset = False

    def take_body(self) -> bytes:
        return b"".join(self._body)

    def send(self, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        """A whole response: JSON, or text as it is."""
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        kind = "text/plain" if isinstance(content, str) else "application/json"
        self._head(status, {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})})
        self._write(body)

    def begin_stream(self, headers: Mapping[str, str]) -> None:
        self.responding = True
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **headers})

    def event(self, data: str | dict[str, Any]) -> None:
        line = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
        self._write(b"%x\r\n%b\r\n" % (len(line), line))

    def end_stream(self) -> None:
        self.responding = False
        self._write(b"0\r\n\r\n")

    def reset(self) -> None:
        """RST instead of FIN, as a killed process or a dropped NAT entry causes it."""
        self.responding, self.was_reset = False, True
        if self._transport is not None:
            sock: socket.socket = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {headers[name]}" for name in headers)]
        self._write("\r\n".join([*lines, "", ""]).encode())

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._standin.connected(self)

    def data_received(self, data: bytes) -> None:
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

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        method, path = self._parser.get_method().decode(), self._url.decode().partition("?")[0]
        self._task = asyncio.create_task(self._standin.respond(self, method, path, self._headers))


async def _main() -> None:
    die_with_parent()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.25, help="service time of a call")
    parser.add_argument("--model", default="standin")
    parser.add_argument("--text", help="text of every answer; default: names the call and its image")
    options = parser.parse_args()
    text = name_call if options.text is None else lambda _: options.text
    standin = StandIn(
        slots=options.slots,
        seconds=options.seconds,
        model=options.model,
        text=text,
        host=options.host,
        port=options.port,
        keep_bodies=False,
    )
    ended = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, ended.set)
    async with standin:
        print(f"standin listening on {standin.url}", flush=True)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(_main())
