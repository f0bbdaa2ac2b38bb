"""An endpoint: one base URL with its lanes, its HTTP client and the task that probes it."""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress

import httpx

from app.errors import LaneUnreachable, StartError
from app.fleet.attempt import Attempt
from app.fleet.client import open_client
from app.fleet.lane import Lane
from app.fleet.probe import ProbeFailed, probe_health, probe_load, probe_model
from app.fleet.scrape import Scrape
from app.settings import Settings
from app.telemetry.logs import get_logger

logger = get_logger(__name__)

JITTER = 0.1
"""Share by which the time between two probes varies, so that gateways don't probe in step."""


def without_credentials(url: str) -> str:
    """`url` as people may see it. Raises `StartError` if it is no address."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if not parsed.host:
        raise StartError("an endpoint is no valid URL")
    return str(parsed.copy_with(userinfo=b""))


class Endpoint:
    """Made in a running loop; `run` is its whole life."""

    def __init__(
        self,
        url: str,
        settings: Settings,
        *,
        own: bool,
        on_change: Callable[[], None],
        on_capacity: Callable[[], None],
    ) -> None:
        """`own`: a replica that this gateway started. Raises `StartError` if `url` is no address."""
        self.shown = without_credentials(url)
        self._client = open_client(url, settings.endpoint_api_key)
        self._interval_seconds = settings.health_interval_seconds
        self._on_change = on_change
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._removed = False
        self._complaint: str | None = None
        lane = Lane(
            url,
            shown=self.shown,
            client=self._client,
            own=own,
            fixed_window=settings.lane_window,
            page_seconds=settings.page_seconds,
            on_change=self._changed,
            on_capacity=on_capacity,
        )
        self.lanes = (lane,)

    async def run(self) -> None:
        """Probe until removed, then wait for the attempts in flight to end; cancelled, end them."""
        async with self._client:
            try:
                while not self._removed:
                    await self._probe_safely()
                    await self._pause()
                await self._idle.wait()
            finally:
                for attempt in self._inflight():
                    attempt.end(LaneUnreachable("The connection to the replica was closed by this service."))

    def remove(self) -> None:
        """No new attempts; those in flight go on."""
        self._removed = True
        for lane in self.lanes:
            lane.remove()
        self._wake.set()

    def down(self) -> None:
        """Its process died."""
        for lane in self.lanes:
            lane.health.disconnected(time.monotonic(), "process died")

    def up(self) -> None:
        """A new process is ready there: it is probed at once."""
        for lane in self.lanes:
            lane.health.restarted()
        self._wake.set()

    async def _probe_safely(self) -> None:
        """Probing must outlive a bug in one round: without it no lane comes back."""
        try:
            await self._probe()
        except Exception:
            logger.exception("probe failed", endpoint=self.shown)

    async def _probe(self) -> None:
        """One round. The lanes share its outcome, for they share the server."""
        try:
            await probe_health(self._client)
            await self._learn_model()
            scrape = await probe_load(self._client)
        except ProbeFailed as failure:
            self._failed(failure)
        else:
            self._passed(scrape)
        for lane in self.lanes:
            lane.end_stalled()

    async def _learn_model(self) -> None:
        """A lane that comes, or comes back, may serve another model than before."""
        coming = [lane for lane in self.lanes if not lane.health.state.takes_pages]
        if coming:
            model = await probe_model(self._client)
            for lane in coming:
                lane.model = model

    def _passed(self, scrape: Scrape) -> None:
        self._complaint = None
        for lane in self.lanes:
            lane.scraped(scrape)
            lane.health.probe_passed(time.monotonic())

    def _failed(self, failure: ProbeFailed) -> None:
        if failure.reason != self._complaint:
            self._complaint = failure.reason
            logger.warning("endpoint fails its probes", endpoint=self.shown, reason=failure.reason)
        for lane in self.lanes:
            lane.scraped(Scrape())
            if failure.down:
                lane.health.disconnected(time.monotonic(), failure.reason)
            else:
                lane.health.probe_missed()

    async def _pause(self) -> None:
        seconds = self._interval_seconds * random.uniform(1 - JITTER, 1 + JITTER)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    def _changed(self) -> None:
        if self._removed and not self._inflight():
            self._idle.set()
        self._on_change()

    def _inflight(self) -> list[Attempt]:
        return [attempt for lane in self.lanes for attempt in lane.inflight]
