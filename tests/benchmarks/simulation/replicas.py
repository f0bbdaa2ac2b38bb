"""Replicas in place of the network: virtual time passes where a model would read."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import httpx

from app.errors import LaneFault
from app.fleet import Answer
from tests.benchmarks.simulation.traffic import Page, Replica, Stay

MODEL = "model"
FAULT_SECONDS = 0.02
"""Until a broken replica says so."""


@dataclass(slots=True)
class Visit:
    """What became of a page."""

    page: Page
    started_at: float = 0.0
    ended_at: float = 0.0

    def stay(self, begun: float) -> Stay:
        """`begun`: the time that arrivals count from."""
        arrived_at = begun + self.page.arrival
        return Stay(self.started_at - arrived_at, self.ended_at - arrived_at)


class Engine:
    """Slots, first come, first served."""

    def __init__(self, replica: Replica) -> None:
        self.calls = 0
        self._replica = replica
        self._slots = asyncio.Semaphore(replica.slots)
        self._present = 0

    async def read(self, visit: Visit) -> Answer:
        """Raises `LaneFault` if the replica is broken."""
        self.calls += 1
        if self._replica.broken:
            await asyncio.sleep(FAULT_SECONDS)
            raise LaneFault("It is broken.")
        self._present += 1
        asked_at = time.monotonic()
        try:
            async with self._slots:
                visit.started_at = time.monotonic()
                await asyncio.sleep(visit.page.seconds * self._replica.slowness)
                visit.ended_at = time.monotonic()
        finally:
            self._present -= 1
        return Answer("Read.", "stop", None, None, visit.ended_at - asked_at, MODEL)

    def metrics(self) -> str:
        labels = f'{{engine="0",model_name="{MODEL}"}}'
        running = min(self._present, self._replica.slots)
        return (
            f"pagefleet_replica_slots {self._replica.slots}\n"
            f"vllm:num_requests_running{labels} {running}\n"
            f"vllm:num_requests_waiting{labels} {self._present - running}\n"
            f"vllm:iteration_tokens_total_count{labels} {time.monotonic()}\n"
        )


class Network:
    """Stands between every fleet and its replicas. A request's body is the key of the page's visit."""

    def __init__(self, replicas: Sequence[Replica], visits: Mapping[bytes, Visit]) -> None:
        self.engines = {f"replica-{number}": Engine(replica) for number, replica in enumerate(replicas)}
        self._visits = visits

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"http://{name}" for name in self.engines)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """For a while no request leaves this process. Attempts don't even pass `httpx`, which takes most real time."""

        async def probe(_: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
            return self._probe(request)

        async def complete(client: httpx.AsyncClient, body: Sequence[bytes], *_: Any, **__: Any) -> Answer:
            return await self.engines[client.base_url.host].read(self._visits[b"".join(body)])

        with (
            patch.object(httpx.AsyncHTTPTransport, "handle_async_request", probe),
            patch("app.fleet.attempt.complete", complete),
        ):
            yield

    def _probe(self, request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/v1/models":
                return httpx.Response(200, json={"data": [{"id": MODEL}]})
            case "/metrics":
                return httpx.Response(200, text=self.engines[request.url.host].metrics())
            case _:
                return httpx.Response(200)
