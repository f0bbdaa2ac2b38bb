"""The stand-in itself: which engine gets a call, and what becomes of it."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from tests.standins import control, wire
from tests.standins.call import Call, name_call
from tests.standins.connection import Connection
from tests.standins.engine import Engine
from tests.standins.exchange import CUT_SECONDS, Exchange
from tests.standins.meters import metrics_text
from tests.standins.replies import Fault, Reply
from tests.standins.script import Script
from tests.standins.service_time import ServiceTime

CHAT = ("POST", "/v1/chat/completions")
RANK_HEADER = "x-data-parallel-rank"


class StandIn:
    """The server. All public attributes but the engines and the address may be changed at any time."""

    def __init__(
        self,
        *,
        slots: int = 8,
        ranks: int = 1,
        seconds: float | ServiceTime = 0.0,
        model: str = "standin",
        aliases: Sequence[str] = (),
        text: Callable[[Call], str] = name_call,
        host: str = "127.0.0.1",
        port: int = 0,
        states_slots: bool = True,
        honours_rank: bool = True,
        queue_limit: int | None = None,
        knee: int | None = None,
        keep_calls: bool = True,
        seed: int | None = None,
    ) -> None:
        """`slots` are those of each rank; `states_slots` shows them in `/metrics`, which vLLM does not."""
        chance = random.Random(seed)
        self.engines = tuple(Engine(slots, chance) for _ in range(ranks))
        self.script = Script(chance)
        self.seconds = seconds
        """Service time of a call."""
        self.model = model
        self.aliases = aliases
        """Further names that `/v1/models` lists."""
        self.text = text
        self.host = host
        self.port = port
        self.states_slots = states_slots
        self.honours_rank = honours_rank
        """Whether `X-data-parallel-rank` pins a call; if not, it is ignored, as by a proxy in front."""
        self.queue_limit = queue_limit
        """Calls that may be here at once, over all ranks; more are refused with 503."""
        self.knee = knee
        """Calls that a rank runs at once at full speed; with more it is as fast in all, so each takes longer."""
        self.keep_calls = keep_calls
        """Whether `calls` and their bodies are kept."""
        self.health_status = 200
        """Status of `/health`; 0: the probe is accepted and never answered."""
        self.models_status = 200
        """Status of `/v1/models`."""
        self.metrics_status = 200
        """Status of `/metrics`; 0: no answer."""
        self.shutting_down = False
        """Like a vLLM that drains: `/health` says 200, calls end in peace, new ones get 500."""
        self.calls: list[Call] = []
        self.call_count = 0
        """Calls that came whole."""
        self.peak = 0
        """Most calls that were here at once."""
        self.disconnects = 0
        """Calls whose client left before the end."""
        self._connections: set[Connection] = set()
        self._exchanges: set[Exchange] = set()
        self._gone = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._errand: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    @property
    def present(self) -> int:
        """Calls that are here now: running, or waiting for a slot."""
        return sum(engine.present for engine in self.engines)

    @property
    def running(self) -> int:
        return sum(engine.running for engine in self.engines)

    @property
    def foreign(self) -> int:
        """Requests of other clients that `/metrics` shows as running on the first rank."""
        return self.engines[0].foreign

    @foreign.setter
    def foreign(self, requests: int) -> None:
        self.engines[0].foreign = requests

    def plan(self, *replies: Reply) -> None:
        """Answer the next calls like this, in order of arrival; before and after them as `always` says."""
        self.script.plan(*replies)

    def always(self, reply: Reply | None) -> None:
        """Answer every call like this; None: with a good answer again."""
        self.script.always = reply

    def mix(self, *shares: tuple[float, Reply]) -> None:
        """Answer this share of the calls like this, by chance; without arguments: none."""
        self.script.mix = shares

    async def start(self) -> None:
        """Listen. After a `stop` the port is the same as before."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), self.host, self.port)
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

    def abort(self) -> None:
        """Like a vLLM told to stop: all calls that are here end with HTTP 200, the text so far and `abort`."""
        for exchange in list(self._exchanges):
            exchange.abort()

    def die(self) -> None:
        """`stop`, ordered by a call that dies with it; a process ends itself."""
        self._errand = asyncio.create_task(self.stop())

    def leave(self, seconds: float) -> None:
        """`stop`, and `start` again after `seconds`: a process that is started again."""
        self._errand = asyncio.create_task(self._leave(seconds))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._errand is not None:
            self._errand.cancel()
        await self.stop()

    async def _leave(self, seconds: float) -> None:
        await asyncio.sleep(CUT_SECONDS)
        await self.stop()
        await asyncio.sleep(seconds)
        await self.start()

    # what connections report

    def connected(self, connection: Connection) -> None:
        self._connections.add(connection)

    def disconnected(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._gone.set()

    def expect(self, method: str, path: str, headers: Mapping[str, str]) -> Reply | None:
        """The head of a request is here; what the script has for it."""
        return None if (method, path) != CHAT or self.shutting_down else self.script.take()

    async def respond(
        self, connection: Connection, method: str, path: str, headers: dict[str, str], reply: Reply | None
    ) -> None:
        """The request is here. `reply` is what `expect` found for it."""
        body = connection.take_body()
        match method, path:
            case "POST", "/v1/chat/completions":
                self.call_count += 1
                call = Call(self.call_count, headers, body, len(body))
                if self.keep_calls:
                    self.calls.append(call)
                await self._serve(connection, call, reply)
            case "GET", "/health":
                await self._probe(connection, self.health_status, "")
            case "GET", "/v1/models":
                listed = [{"id": name, "object": "model"} for name in (self.model, *self.aliases)]
                await self._probe(connection, self.models_status, {"object": "list", "data": listed})
            case "GET", "/metrics":
                text = metrics_text(self.engines, self.model, states_slots=self.states_slots)
                await self._probe(connection, self.metrics_status, text)
            case "GET", "/standin":
                connection.send(200, control.counters(self))
            case "POST", "/standin":
                connection.send(*control.order(self, body))
            case _:
                connection.send(404, wire.error(404, "Not Found"))

    def begin(self, call: Call, reply: Reply) -> Reply:
        """The call has got its slot, and `reply` from the script; what it is to get. For subclasses."""
        return reply

    async def _probe(self, connection: Connection, status: int, content: str | Mapping[str, Any]) -> None:
        if status == 0:
            await asyncio.Event().wait()
        connection.send(status, content if status == 200 else wire.error(status))

    # one call

    async def _serve(self, connection: Connection, call: Call, reply: Reply | None) -> None:
        if self.shutting_down:
            connection.send(500, wire.error(500, wire.SHUTTING_DOWN))
            return
        if self.queue_limit is not None and self.present >= self.queue_limit:
            connection.send(503, wire.error(503, wire.QUEUE_FULL))
            return
        call.rank = self._rank_of(call)
        if not 0 <= call.rank < len(self.engines):
            detail = f"data_parallel_rank {call.rank} is out of range [0, {len(self.engines)})."
            call.rank = None
            connection.send(400, wire.error(400, detail))
            return
        engine = self.engines[call.rank]
        engine.calls += 1
        reply = reply or engine.script.take() or Reply()
        if reply.fault in (Fault.RESET, Fault.RESET_EARLY):
            connection.reset()
            return
        exchange = Exchange(self, connection, call, reply, engine)
        self._exchanges.add(exchange)
        try:
            self.peak = max(self.peak, self.present + 1)
            async with engine.slot():
                await exchange.run()
        except asyncio.CancelledError:
            if not (connection.was_reset or exchange.aborted):
                call.disconnected = True
                self.disconnects += 1
            raise
        finally:
            self._exchanges.discard(exchange)

    def _rank_of(self, call: Call) -> int:
        """The rank that the call is pinned to; without a pin, or with one that is no number, the least loaded."""
        pin = call.headers.get(RANK_HEADER)
        if pin is not None and self.honours_rank:
            try:
                return int(pin)
            except ValueError:
                pass  # vLLM ignores it silently
        ranks = len(self.engines)
        turned = [(call.number + offset) % ranks for offset in range(ranks)]  # so that ties go round
        return min(turned, key=lambda rank: self.engines[rank].present)
