"""What this gateway tells of itself once a second: to the other gateways, and to whoever scrapes it."""

import asyncio
from collections.abc import Callable, Mapping

from app.documents.drain_rate import DrainRate
from app.journal import Journal
from app.telemetry import metrics

PULSE_SECONDS = 1.0


class Pulse:
    def __init__(self, journal: Journal, drain_rate: DrainRate, wants: Callable[[], Mapping[str, int]]) -> None:
        """`wants` gives, by profile, the pages that this gateway could work on."""
        self._peers = journal.peers
        self._drain_rate = drain_rate
        self._wants = wants
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._beat_forever(), name="pulse")

    async def stop(self) -> None:
        """Tell a last time, then no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.beat()

    def beat(self) -> None:
        rate = self._drain_rate.pages_per_second
        for profile, pages in self._wants().items():
            self._peers.want(profile, pages)
        self._peers.note_rate(rate)
        metrics.DRAIN_RATE.set(rate)
        metrics.GATEWAYS.set(self._peers.count)

    async def _beat_forever(self) -> None:
        while True:
            self.beat()
            await asyncio.sleep(PULSE_SECONDS)
