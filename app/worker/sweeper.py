"""Erases documents whose keep time is over."""

import asyncio

from app.errors import StoreUnavailable
from app.journal import Journal
from app.journal.blobs import Blobs
from app.telemetry.logs import get_logger

BATCH = 100

_logger = get_logger("worker")


class Sweeper:
    """Rows go before bytes: bytes without a row are found again, a row without bytes would be a lie."""

    def __init__(self, journal: Journal, blobs: Blobs, interval_seconds: float) -> None:
        self._journal = journal
        self._blobs = blobs
        self._interval_seconds = interval_seconds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._sweep_forever(), name="sweeper")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self) -> int:
        """Erase a batch of expired documents; how many. Raises `StoreUnavailable`."""
        keys = await self._journal.sweep(BATCH)
        for key in keys:
            await self._blobs.delete(key)
        return len(keys)

    async def _sweep_forever(self) -> None:
        while True:
            try:
                while swept := await self.sweep():
                    _logger.info("documents swept", documents=swept)
            except StoreUnavailable as error:
                _logger.error("the sweep waits for the store", detail=error.detail)
            await asyncio.sleep(self._interval_seconds)
