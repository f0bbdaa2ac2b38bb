"""Documents' files, for pages that can wait for them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from app.errors import NotFound, SourceUnavailable, StoreUnavailable
from app.journal.blobs import Blobs

PAUSE_SECONDS = 0.5
"""Before the first repeat; doubled with each further one."""
MAX_PAUSE_SECONDS = 10.0


class SourceFiles:
    """Asks a store that is away again and again, for `seconds` in all."""

    def __init__(self, blobs: Blobs, seconds: float) -> None:
        self._blobs = blobs
        self._seconds = seconds

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        """A local file with the blob's bytes, which stays as long as the context.

        Raises `SourceUnavailable`: at once if the blob is gone, else when the time is over.
        """
        async with AsyncExitStack() as stack:
            yield await self._enter(stack, key)

    async def _enter(self, stack: AsyncExitStack, key: str) -> Path:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        pause = PAUSE_SECONDS
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await stack.enter_async_context(self._blobs.local(key))
            except NotFound as error:
                raise SourceUnavailable(error.detail) from error
            except TimeoutError as error:
                raise SourceUnavailable("the file was not fetched in time") from error
            except StoreUnavailable as error:
                if loop.time() + pause >= deadline:
                    raise SourceUnavailable(error.detail) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
