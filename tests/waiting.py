"""Waiting for what another process does."""

import asyncio
from collections.abc import Awaitable, Callable

DEADLINE_SECONDS = 60


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = DEADLINE_SECONDS) -> None:
    """Return when `condition` holds; TimeoutError when it doesn't within `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            holds = condition()
            if await holds if isinstance(holds, Awaitable) else holds:
                return
            await asyncio.sleep(0.01)
