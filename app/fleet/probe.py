"""Active probes of an endpoint: is it there, which model does it serve, how loaded is it."""

import asyncio
from typing import Any

import httpx

from app.documents.text import clean_text
from app.fleet.scrape import Scrape, parse_scrape

PROBE_SECONDS = 1.0
"""Time for each answer. Probes run beside the attempts and never wait for them."""


class ProbeFailed(Exception):
    """The endpoint can't be used now."""

    def __init__(self, reason: str, *, down: bool = False) -> None:
        """`down`: nobody is there, or the server says that its engine is dead; else it was only silent or unclear."""
        super().__init__(reason)
        self.reason = reason
        self.down = down


async def probe_health(client: httpx.AsyncClient) -> None:
    """`GET /health`. A server that has no such route, but answers, passes. Raises `ProbeFailed`."""
    response = await _get(client, "/health")
    if response.is_server_error:
        raise ProbeFailed(f"/health answers {response.status_code}", down=True)


async def probe_model(client: httpx.AsyncClient) -> str:
    """`GET /v1/models`: the first model's id. Raises `ProbeFailed`."""
    response = await _get(client, "/v1/models")
    if response.status_code != 200:
        raise ProbeFailed(f"/v1/models answers {response.status_code}")
    try:
        models: Any = response.json()
        return clean_text(str(models["data"][0]["id"]))
    except (ValueError, LookupError, TypeError):
        raise ProbeFailed("/v1/models names no model") from None


async def probe_load(client: httpx.AsyncClient) -> Scrape:
    """`GET /metrics`; an empty scrape where it can't be read: not every server has it."""
    try:
        response = await _get(client, "/metrics")
        return parse_scrape(response.text) if response.status_code == 200 else Scrape()
    except (ProbeFailed, ValueError):
        return Scrape()


async def _get(client: httpx.AsyncClient, path: str) -> httpx.Response:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await client.get(path)
    except TimeoutError:
        raise ProbeFailed(f"{path} does not answer in time") from None
    except httpx.RequestError:
        raise ProbeFailed("the connection is refused or breaks", down=True) from None
