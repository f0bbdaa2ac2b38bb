"""One call that holds a slot of its engine: service time, then an answer, or what goes wrong with it."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

from tests.standins import wire
from tests.standins.call import Call
from tests.standins.connection import Connection
from tests.standins.engine import Engine
from tests.standins.replies import RUNAWAY_ROUNDS, Fault, Reply

if TYPE_CHECKING:
    from tests.standins.server import StandIn

COMMENT_SECONDS = 0.05
CUT_SECONDS = 0.01
"""Before a reset in the middle: what was written has reached the client, so that the reset does not erase it."""


class Exchange:
    """From the call's arrival; `run` from when it has its slot."""

    def __init__(self, standin: "StandIn", connection: Connection, call: Call, reply: Reply, engine: Engine) -> None:
        self._standin = standin
        self._connection = connection
        self._call = call
        self._reply = reply
        self._engine = engine
        self.aborted = False

    async def run(self) -> None:
        self._reply = reply = self._standin.begin(self._call, self._reply)
        end = time.monotonic() + self._service_seconds()
        text = self._standin.text(self._call) if reply.text is None else reply.text  # part of the service time
        await asyncio.sleep(end - time.monotonic())
        if reply.status != 200:
            self._connection.send(reply.status, wire.error(reply.status, reply.message), reply.headers)
        elif not await self._break_before():
            await (self._stream(text) if self._call.streamed else self._send(text))
        self._connection.cut_next = reply.fault is Fault.KEEP_ALIVE_CUT

    def abort(self) -> None:
        """End the answer now, as if it were one."""
        self.aborted = True
        if not self._call.streamed:
            answer = wire.completion(self._call.number, self._standin.model, "", "abort")
            self._connection.send(200, answer)
        else:
            if not self._connection.responding:
                self._connection.begin_stream({})
            self._chunk({}, "abort")
            self._end_stream()
        self._connection.abandon()

    def _service_seconds(self) -> float:
        seconds = self._standin.seconds if self._reply.seconds is None else self._reply.seconds
        if callable(seconds):
            seconds = seconds(self._call)
        knee = self._standin.knee
        return seconds if knee is None else seconds * max(1.0, self._engine.running / knee)

    async def _break_before(self) -> bool:
        """What goes wrong instead of an answer; whether anything did."""
        match self._reply.fault:
            case Fault.DIE:
                self._standin.die()
                await self._engine.hang()
            case Fault.HANG:
                await self._engine.hang()
            case Fault.HANG_WITH_COMMENTS:
                self._connection.begin_stream({})
                await asyncio.gather(self._engine.hang(), self._comment())
            case Fault.ERROR_BODY:
                self._connection.send(200, wire.error(500, wire.ENGINE_DEAD))
            case Fault.HTML:
                self._connection.send(200, wire.WEB_PAGE, media_type="text/html")
            case Fault.GARBAGE:
                self._connection.send(200, wire.GARBAGE, media_type="text/event-stream")
            case _:
                return False
        return True

    async def _break_midway(self) -> None:
        """What goes wrong in the middle of a stream, if anything does."""
        match self._reply.fault:
            case Fault.CUT:
                self._connection.flush()
                await asyncio.sleep(CUT_SECONDS)
                self._connection.reset()
            case Fault.HANG_MIDWAY:
                self._connection.flush()
                await self._engine.hang()
            case Fault.IN_BAND_ERROR:
                self._connection.event(wire.error(500, wire.ENGINE_DEAD))
                self._end_stream()

    async def _send(self, text: str) -> None:
        whole = None if self._reply.fault is Fault.EMPTY_CHOICES else text
        answer = wire.completion(self._call.number, self._standin.model, whole, self._reply.finish_reason)
        self._connection.send(200, answer, self._reply.headers)

    async def _stream(self, text: str) -> None:
        fault = self._reply.fault
        self._connection.begin_stream(self._reply.headers)
        if fault is Fault.EMPTY_CHOICES:
            self._chunk(None)
            self._end_stream()
            return
        self._chunk({"role": "assistant", "content": ""})
        if fault is Fault.MALFORMED:
            self._connection.event('{"choices": [')
        await self._stream_text(text)
        if not self._connection.responding:
            return
        if fault is Fault.NO_FINISH:
            self._connection.end_stream()
            return
        self._chunk({}, "length" if fault is Fault.RUNAWAY else self._reply.finish_reason)
        self._chunk(None, usage=wire.usage(text))
        self._end_stream()

    async def _stream_text(self, text: str) -> None:
        """In the middle it may break, and the stream with it."""
        runaway = self._reply.fault is Fault.RUNAWAY
        parts = [text] * RUNAWAY_ROUNDS if runaway else wire.split(text, self._reply.chunks)
        for number, part in enumerate(parts):
            if number >= len(parts) / 2:
                await self._break_midway()
                if not self._connection.responding:
                    return
            if self._reply.chunk_seconds or runaway:
                self._connection.flush()
                await asyncio.sleep(self._reply.chunk_seconds)
            self._chunk({"content": part})

    def _chunk(
        self, delta: dict[str, str] | None, finish_reason: str | None = None, usage: dict[str, int] | None = None
    ) -> None:
        self._engine.step()
        chunk: dict[str, Any] = wire.chunk(self._call.number, self._standin.model, delta, finish_reason, usage)
        self._connection.event(chunk)

    def _end_stream(self) -> None:
        self._connection.event("[DONE]")
        self._connection.end_stream()

    async def _comment(self) -> None:
        while True:
            self._connection.comment()
            self._connection.flush()
            await asyncio.sleep(COMMENT_SECONDS)
