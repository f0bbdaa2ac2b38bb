"""What must reach the store, however long it is away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.errors import StoreUnavailable
from app.telemetry.logs import get_logger

STORE_RETRY_SECONDS = 0.5

Result = TypeVar("Result")

_logger = get_logger("worker")


class Outbox:
    """Writes what replicas have read: it is not read again because the store was away.

    While the store is away, one of the writes tries it and the others wait: hundreds of pages cost no more than one.
    """

    def __init__(self) -> None:
        self._away = False
        self._prober = asyncio.Lock()

    async def send(self, write: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat `write`, which must be safe to repeat, until it doesn't raise `StoreUnavailable`."""
        while True:
            try:
                if not self._away:
                    return await write()
                async with self._prober:
                    if self._away:
                        return await self._probe(write)
            except StoreUnavailable as error:
                if not self._away:
                    self._away = True
                    _logger.error("pages wait for the store", detail=error.detail)

    async def _probe(self, write: Callable[[], Awaitable[Result]]) -> Result:
        await asyncio.sleep(STORE_RETRY_SECONDS)
        result = await write()
        self._away = False
        _logger.info("the store is back")
        return result
