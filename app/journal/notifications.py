"""Changes on their way between gateways, by PostgreSQL's LISTEN and NOTIFY.

A notification is sent after its transaction, not in it: inside, every commit of the database would wait for one lock.
So one may be lost with the gateway that would have sent it. A look at the watched documents every second makes up for
that, and is all that is left while the listening connection is away.
"""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from sqlalchemy import func, select

from app.errors import StoreUnavailable
from app.journal.changes import Changes
from app.journal.database import Database
from app.journal.postgres import CONNECTION_PARAMETERS
from app.journal.tables import documents
from app.telemetry.logs import get_logger

CHANNEL = "pagefleet"
POLL_SECONDS = 1.0
RECONNECT_SECONDS = 0.5
_COMPLAINT_SECONDS = 60.0
"""Time between two lines in the log about a store that stays away."""
_MAX_IDS = 120
"""Ids of documents in one notification, which holds less than 8,000 bytes."""

_log = get_logger("journal")


class Notifications:
    """Relays the changes of gateway `owner`, and delivers those of the others."""

    def __init__(self, url: str, owner: str, database: Database, changes: Changes) -> None:
        self._url = url
        self._owner = owner
        self._database = database
        self._changes = changes
        self._told: dict[tuple[str, str], None] = {}  # a set that keeps its order
        self._telling = asyncio.Event()
        self._seen: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._changes.relay = self
        self._tasks = [
            asyncio.create_task(_forever(step), name=step.__name__) for step in (self._tell_on, self._hear, self._poll)
        ]

    async def stop(self) -> None:
        """What was told last may not have been sent; the others find it by themselves."""
        self._changes.relay = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def tell_changed(self, document_id: str) -> None:
        self._tell("changed", document_id)

    def tell_cancelled(self, document_id: str) -> None:
        self._tell("cancelled", document_id)

    def tell_queued(self) -> None:
        self._tell("queued", "")

    def _tell(self, kind: str, document_id: str) -> None:
        self._told[kind, document_id] = None
        self._telling.set()

    async def _tell_on(self) -> None:
        """What is told while a notification is on its way shares the next one."""
        await self._telling.wait()
        self._telling.clear()
        told, self._told = list(self._told), {}
        for part in _parts(told):
            payload = json.dumps({"from": self._owner, "told": part})
            await self._database.read(select(func.pg_notify(CHANNEL, payload)))

    async def _connect(self) -> psycopg.AsyncConnection:
        parameters = {name: value for name, value in CONNECTION_PARAMETERS.items() if f"{name}=" not in self._url}
        connecting = asyncio.create_task(psycopg.AsyncConnection.connect(self._url, autocommit=True, **parameters))
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            # Cancelled half-way it would stay open, and the server would wait a minute for the rest of the greeting.
            with suppress(psycopg.Error):
                await (await connecting).close()
            raise

    async def _hear(self) -> None:
        async with await self._connect() as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            self._changes.hear_gap()
            async for notification in connection.notifies():
                self._take(json.loads(notification.payload))

    def _take(self, message: Mapping[str, Any]) -> None:
        if message["from"] == self._owner:
            return
        for kind, document_id in message["told"]:
            match kind:
                case "changed":
                    self._changes.hear_changed(document_id)
                case "cancelled":
                    self._changes.hear_cancelled(document_id)
                case "queued":
                    self._changes.hear_queued()

    async def _poll(self) -> None:
        await asyncio.sleep(POLL_SECONDS)
        self._seen = await self._look(self._seen)

    async def _look(self, seen: Mapping[str, int]) -> dict[str, int]:
        """Wake who watches a document that has moved on since the last look, or is gone; how far each is now."""
        watched = self._changes.watched
        if not watched:
            return {}
        rows = await self._database.read(select(documents.c.id, documents.c.seq).where(documents.c.id.in_(watched)))
        found = {row.id: row.seq for row in rows}
        for document_id in watched:
            if found.get(document_id) != seen.get(document_id) or document_id not in found:
                self._changes.hear_changed(document_id)
        return found


async def _forever(step: Callable[[], Awaitable[None]]) -> None:
    """Nothing that goes wrong once ends it: what is missed is found by the look every second."""
    complained_at = -math.inf
    while True:
        try:
            await step()
        except (StoreUnavailable, psycopg.Error) as error:
            if time.monotonic() - complained_at >= _COMPLAINT_SECONDS:
                complained_at = time.monotonic()
                _log.warning("notifications wait for the store", reason=type(error).__name__)
            await asyncio.sleep(RECONNECT_SECONDS)
        except Exception:
            _log.exception("notifications failed unexpectedly")
            await asyncio.sleep(RECONNECT_SECONDS)


def _parts(told: Sequence[tuple[str, str]]) -> Iterator[Sequence[tuple[str, str]]]:
    return (told[start : start + _MAX_IDS] for start in range(0, len(told), _MAX_IDS))
