"""Erases documents whose keep time is over, and bytes that belong to none."""

import asyncio
from collections.abc import Awaitable, Callable

from app.errors import StoreUnavailable
from app.journal import Journal
from app.journal.blobs import Blobs, discard
from app.settings import Settings
from app.telemetry.logs import get_logger
from app.worker.orphans import Orphans

BATCH = 100
MAX_ORPHAN_INTERVAL_SECONDS = 900
"""Between two looks for orphans, each of which lists the whole store."""

_logger = get_logger("worker")


class Sweeper:
    """Rows go before bytes: bytes without a row are found again, a row without bytes would be a lie."""

    def __init__(self, journal: Journal, blobs: Blobs, settings: Settings) -> None:
        self._journal = journal
        self._blobs = blobs
        self._settings = settings
        self._orphans = Orphans(journal, blobs)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Before uploads are taken. Raises `StoreUnavailable`."""
        if self._settings.database_url is None and self._settings.blob_url is None:
            # No other gateway can be uploading: what has no row now will never have one.
            await self._sweep_orphans(age_seconds=0)
        orphan_seconds = self._settings.orphan_seconds
        interval_seconds = min(orphan_seconds / 4, MAX_ORPHAN_INTERVAL_SECONDS)
        self._tasks = [
            asyncio.create_task(_forever(self._sweep_expired, self._settings.sweep_interval_seconds), name="sweeper"),
            asyncio.create_task(
                _forever(lambda: self._sweep_orphans(orphan_seconds), interval_seconds), name="orphan sweeper"
            ),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def sweep(self) -> int:
        """Erase a batch of expired documents; how many. Raises `StoreUnavailable` where the database is away."""
        keys = await self._journal.sweep(BATCH)
        for key in keys:
            await discard(self._blobs, key)
        return len(keys)

    async def _sweep_expired(self) -> None:
        while swept := await self.sweep():
            _logger.info("documents swept", documents=swept)

    async def _sweep_orphans(self, age_seconds: float) -> None:
        if erased := await self._orphans.sweep(age_seconds):
            _logger.info("orphaned files erased", files=erased)


async def _forever(sweep: Callable[[], Awaitable[None]], interval_seconds: float) -> None:
    while True:
        try:
            await sweep()
        except StoreUnavailable as error:
            _logger.error("the sweep waits for the store", detail=error.detail)
        except Exception:
            # A fault of ours must cost one sweep, not all from here on.
            _logger.exception("a sweep failed unexpectedly")
        await asyncio.sleep(interval_seconds)
