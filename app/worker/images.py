"""The bytes of page images that one gateway holds at a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from app.rendering import Drawing
from app.telemetry import metrics


class ImageBuffer:
    """Back-pressure on drawing: above `limit_bytes` no further page is drawn until images are let go.

    Pages that are being drawn at that moment may pass the limit, by one image a render worker at most.
    """

    def __init__(self, limit_bytes: int, render_workers: int) -> None:
        self._limit = limit_bytes
        self._held = 0
        self._room = asyncio.Event()
        self._room.set()
        # Pages that wait for a render worker must not have passed the check for room: all of them would be drawn.
        self._drawing = asyncio.Semaphore(render_workers)

    @asynccontextmanager
    async def hold(self, draw: Callable[[], Awaitable[Drawing]]) -> AsyncIterator[Drawing]:
        """Draw a page when there is room. Its bytes count as long as the context: to its end, over all attempts."""
        async with self._drawing:
            await self._room.wait()
            drawing = await draw()
            self._add(len(drawing.image_base64))
        try:
            yield drawing
        finally:
            self._add(-len(drawing.image_base64))

    def _add(self, count: int) -> None:
        self._held += count
        metrics.IMAGE_BYTES.set(self._held)
        if self._held < self._limit:
            self._room.set()
        else:
            self._room.clear()
