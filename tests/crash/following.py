"""One client that follows one document's events, whatever dies."""

import asyncio

import httpx

from tests.crash.service import AGAIN_SECONDS, Service
from tests.system.gateway import Event


class Follower:
    def __init__(self, service: Service, document_id: str) -> None:
        self.events: list[Event] = []
        """All that it was sent."""
        self.reconnects = -1
        self._service = service
        self._path = f"/documents/{document_id}/events"

    async def to_the_end(self) -> None:
        """Follow from the last event on to the next `end`, or until the document is gone."""
        ended = False
        while not ended:
            ended = await self._connect()

    async def _connect(self) -> bool:
        """Follow until the connection ends; whether nothing more is to come."""
        self.reconnects += 1
        try:
            async with self._service.events(self._path, self.events[-1].id if self.events else None) as connection:
                if connection.status in (204, 404):
                    return True
                async for event in connection.events:
                    self.events.append(event)
                    if event.kind == "end":
                        return True
        except httpx.TransportError:
            pass
        await asyncio.sleep(AGAIN_SECONDS)
        return False
