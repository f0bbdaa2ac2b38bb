"""The service as its users reach it: through any gateway, and again until one answers."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple, Self

import httpx
from httpx_sse import EventSource, aconnect_sse

from tests.system.gateway import Event

AGAIN_SECONDS = 0.1
_TIMEOUT_SECONDS = 60
"""Deadline of any silence; heartbeats come four times as often."""
_TRY_AGAIN_STATUSES = (429, 503)

Body = Callable[[], AsyncIterator[bytes] | None]


class Answer(NamedTuple):
    response: httpx.Response
    repeated: bool
    """Whether the request was sent more than once: an earlier one may have been carried out, too."""


class Connection(NamedTuple):
    """To an event stream."""

    status: int
    events: AsyncIterator[Event]
    """None but with status 200."""


class Service:
    """As a context it closes its connections."""

    def __init__(self, urls: Sequence[str], rng: random.Random) -> None:
        self._rng = rng
        self._clients = [
            httpx.AsyncClient(
                base_url=url,
                timeout=_TIMEOUT_SECONDS,
                trust_env=False,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            )
            for url in urls
        ]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for client in self._clients:
            await self._stack.enter_async_context(client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def request(self, method: str, path: str, body: Body = lambda: None, **options: Any) -> Answer:
        """The first answer that is not for want of a gateway, a store or time; `body` is called for each try."""
        repeated = False
        while True:
            try:
                response = await self._any().request(method, path, content=body(), **options)
            except httpx.TransportError:
                pass
            else:
                if not _try_again(response):
                    return Answer(response, repeated)
            repeated = True
            await asyncio.sleep(AGAIN_SECONDS)

    async def json(self, path: str, **query: str) -> Any:
        """What GET says."""
        response, _ = await self.request("GET", path, params=query)
        return response.raise_for_status().json()

    @asynccontextmanager
    async def events(self, path: str, last_event_id: str | None) -> AsyncIterator["Connection"]:
        """One connection to a stream. Raises `httpx.TransportError` when it can't be made, or is cut."""
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        async with aconnect_sse(self._any(), "GET", path, headers=headers) as source:
            status = source.response.status_code
            assert status in (200, 204, 404, *_TRY_AGAIN_STATUSES), f"{path} after {last_event_id}: {status}"
            yield Connection(status, _events(source))

    def _any(self) -> httpx.AsyncClient:
        return self._rng.choice(self._clients)


def _try_again(response: httpx.Response) -> bool:
    in_flight = response.status_code == 409 and response.json()["code"] == "idempotency_in_flight"
    return response.status_code in _TRY_AGAIN_STATUSES or in_flight


async def _events(source: EventSource) -> AsyncIterator[Event]:
    if source.response.status_code == 200:
        async for event in source.aiter_sse():
            yield Event(event)
