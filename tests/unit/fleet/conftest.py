"""What the tests of the fleet share: a fleet on stand-in replicas, request bodies, waiting for a condition."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from app.fleet import Fleet
from app.settings import Settings

DEADLINE_SECONDS = 10.0

RunFleet = Callable[..., AbstractAsyncContextManager[Fleet]]


def any_model(_: str) -> bool:
    return True


def page_request(image: bytes = b"an image") -> list[bytes]:
    """A chat-completions request in parts, the image's base64 in a part of its own."""
    content = [{"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,@"}}]
    body = {"model": "standin", "stream": True, "messages": [{"role": "user", "content": content}]}
    before, after = json.dumps(body).split("@")
    return [before.encode(), base64.b64encode(image), after.encode()]


async def until(condition: Callable[[], object]) -> None:
    """Wait for `condition`; the deadline is far above what it takes."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.fixture
def run_fleet() -> RunFleet:
    """`async with run_fleet(url, …, lane_window=4) as fleet`: lanes are up when it begins, unless `wait` is false."""

    @asynccontextmanager
    async def run(*urls: str, wait: bool = True, **settings: Any) -> AsyncIterator[Fleet]:
        fleet = Fleet(Settings(endpoints=urls, **{"health_interval_seconds": 0.05, **settings}))
        await fleet.start()
        try:
            if wait:
                await until(lambda: all(lane.state.takes_pages for lane in fleet.lanes()))
            yield fleet
        finally:
            await fleet.stop()

    return run
