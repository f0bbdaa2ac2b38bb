"""Who lives: every gateway counts up a number in its row, and one whose number stands still is dead.

How long it stood still is measured by each observer on its own monotonic clock, over a time in which the observer
itself was there. So no wall clock, which may jump or differ between machines, decides over a claim, and after an outage
of the database nobody is taken for dead for what nobody could have written. A wrong verdict costs work, never truth:
the claim number of every page that is taken over has moved on.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from app.errors import StoreUnavailable
from app.journal.changes import Changes
from app.journal.database import Database, Transaction
from app.journal.peers import Peer, Peers
from app.journal.releases import HAS_NO_GATEWAY, Releases
from app.journal.tables import gateways
from app.telemetry.logs import get_logger

BEAT_SECONDS = 1.0
_BEATS_IN_A_CLAIM = 6
"""At least: a few may come late before anybody is taken for dead."""
_BEATS_BETWEEN_LOOKS = 60
"""For pages that a gateway left which nobody here has ever seen, or whose heir died too."""
_SILENT_SECONDS = 5.0
"""A gateway that has not beaten for so long may live, but others use its lanes meanwhile."""

_log = get_logger("journal")


@dataclass(frozen=True, slots=True)
class _Sight:
    """Where a gateway's beat stood, and since when it has stood there."""

    beat: int
    since: float


class Beats:
    """Keeps one gateway's row, hears of the others, and takes over the pages of those that died."""

    def __init__(
        self,
        database: Database,
        changes: Changes,
        peers: Peers,
        releases: Releases,
        claim_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._changes = changes
        self._peers = peers
        self._releases = releases
        self._claim_seconds = claim_seconds
        self._interval = min(BEAT_SECONDS, claim_seconds / _BEATS_IN_A_CLAIM)
        self._clock = clock
        self._sights: dict[str, _Sight] = {}
        self._beaten_at = clock()
        self._beats = 0
        self._may_inherit = False
        self._task: asyncio.Task[None] | None = None

    async def enter(self, *, alone: bool) -> None:
        """Write this gateway's row. `alone`: no other can live, so the pages of all that ever were are taken over."""

        def write(transaction: Transaction) -> None:
            if alone:
                transaction.run(delete(gateways))
            transaction.run(insert(gateways).values(id=self._peers.owner, wants={}))

        await self._database.write(write)
        await self._take_over()

    def start(self) -> None:
        self._task = asyncio.create_task(self._beat_forever(), name="beats")

    async def leave(self) -> None:
        """Stop, and take this gateway's row out, so that others need not wait for it to be taken for dead."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        mine = delete(gateways).where(gateways.c.id == self._peers.owner)
        await self._database.write(lambda transaction: transaction.run(mine), repeatable=True)

    async def beat(self) -> None:
        """Tell and hear once. Raises `StoreUnavailable`."""
        known = set(self._sights)
        lost, rows = await self._database.write(self._exchange, repeatable=True)
        if lost:
            _log.warning("this gateway was taken for dead, and is back")
            self._changes.doubt()
        dead = self._look(rows)
        gone = {row.id for row in dead} | {self._peers.owner}
        self._peers.heard({row.id: self._peer(row) for row in rows if row.id not in gone})
        for row in dead:
            await self._bury(row)
        self._beats += 1
        self._may_inherit |= bool(dead or known - set(self._sights) or self._beats % _BEATS_BETWEEN_LOOKS == 0)
        if self._may_inherit:  # also from before, where the store went away meanwhile
            await self._take_over()
            self._may_inherit = False

    def _peer(self, row: Row[Any]) -> Peer:
        silent_seconds = self._beaten_at - self._sights[row.id].since
        return Peer() if silent_seconds > _SILENT_SECONDS else Peer(row.wants, row.pages_per_second)

    async def _beat_forever(self) -> None:
        waiting = False
        while True:
            try:
                await self.beat()
                waiting = False
            except StoreUnavailable as error:
                if not waiting:
                    _log.error("the beat waits for the store", detail=error.detail)
                waiting = True
            except Exception:
                _log.exception("the beat failed unexpectedly")
            await asyncio.sleep(self._interval)

    def _exchange(self, transaction: Transaction) -> tuple[bool, list[Row[Any]]]:
        """Whether our row was gone, and the rows of all."""
        own = self._peers.own
        told = {"wants": dict(own.wants), "pages_per_second": own.pages_per_second}
        moved = transaction.run(
            update(gateways).where(gateways.c.id == self._peers.owner).values(beat=gateways.c.beat + 1, **told)
        )
        if not moved:  # unless another beat of this gateway, which had to rejoin, is first
            transaction.insert_if_absent(gateways, {"id": self._peers.owner, **told})
        return not moved, list(transaction.rows(select(gateways)))

    def _look(self, rows: list[Row[Any]]) -> list[Row[Any]]:
        """The rows of gateways that are dead."""
        now = self._clock()
        if now - self._beaten_at > self._claim_seconds / 2:
            self._sights = {}  # we were away: what stood still meanwhile proves nothing
        self._beaten_at = now
        self._sights = {row.id: self._sight(row, now) for row in rows}
        return [row for row in rows if now - self._sights[row.id].since > self._claim_seconds]

    def _sight(self, row: Row[Any], now: float) -> _Sight:
        before = self._sights.get(row.id)
        return before if before is not None and before.beat == row.beat else _Sight(row.beat, now)

    async def _bury(self, row: Row[Any]) -> None:
        """Take a dead gateway's row out, if it has not moved after all."""
        condition = (gateways.c.id == row.id, gateways.c.beat == row.beat)
        if await self._database.write(lambda transaction: transaction.run(delete(gateways).where(*condition))):
            _log.warning("a gateway died", gateway=row.id)

    async def _take_over(self) -> None:
        """Queue again what gateways without a row have claimed."""
        while freed := await self._database.write(lambda transaction: self._releases.free(transaction, HAS_NO_GATEWAY)):
            _log.warning("pages of a dead gateway are queued again", pages=freed)
