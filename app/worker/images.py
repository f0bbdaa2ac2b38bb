"""The bytes of page images that one gateway holds at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.rendering import Drawing
from app.telemetry import metrics


class ImageBuffer:
    """Back-pressure on drawing: above `limit` bytes no further page is drawn until images are let go.

    Pages that are being drawn at that moment may pass the limit, by one image a render worker at most.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = 0
        self._released = asyncio.Condition()

    async def room(self) -> None:
        """Wait until another page may be drawn."""
        async with self._released:
            await self._released.wait_for(lambda: self._held < self._limit)

    @asynccontextmanager
    async def hold(self, drawing: Drawing) -> AsyncIterator[None]:
        """Count the drawing's bytes while the page needs them: from its drawing to its end, over all attempts."""
        self._add(len(drawing.image_base64))
        try:
            yield
        finally:
            self._add(-len(drawing.image_base64))
            async with self._released:
                self._released.notify_all()

    def _add(self, count: int) -> None:
        self._held += count
        metrics.IMAGE_BYTES.set(self._held)
