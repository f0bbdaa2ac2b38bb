"""An endpoint: one base URL with its lanes, its HTTP client and the task that probes it."""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import httpx

from app.errors import LaneUnreachable, StartError
from app.fleet.attempt import Attempt
from app.fleet.client import open_client
from app.fleet.health import LaneState
from app.fleet.lane import Lane
from app.fleet.probe import ProbeFailed, probe_health, probe_load, probe_model
from app.fleet.ranks import EngineCount, PinCheck
from app.fleet.scrape import EngineLoad, Scrape
from app.settings import Settings
from app.telemetry.logs import get_logger

logger = get_logger(__name__)

JITTER = 0.1
"""Share by which the time between two probes varies, so that gateways don't probe in step."""
COUNTERS_LAG_SECONDS = 0.5
"""A page that ended this long before a scrape was asked for is surely in what it shows."""


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
        on_lanes: Callable[[], None],
    ) -> None:
        """`own`: a replica that this gateway started. `on_lanes` is called when there are other lanes than before, or
        one serves another model. Raises `StartError` if `url` is no address.
        """
        self.shown = without_credentials(url)
        self._url = url
        self._settings = settings
        self._own = own
        self._client = open_client(url, settings.endpoint_api_key)
        self._on_change = on_change
        self._on_capacity = on_capacity
        self._on_lanes = on_lanes
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._removed = False
        self._complaint: str | None = None
        self._engines = EngineCount()
        self._pins = PinCheck()
        self._retired: list[Lane] = []
        self.lanes: Sequence[Lane] = (self._lane(None),)

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

    def obey(self, drained: Collection[str]) -> None:
        """Drain the lanes whose ids are in `drained`, resume the others; those resumed are probed at once."""
        for lane in self.lanes:
            if lane.id in drained:
                lane.health.drained("drained by command")
            elif lane.health.state is LaneState.DRAINING:
                lane.health.resumed()
                self._wake.set()

    def _lane(self, rank: int | None) -> Lane:
        return Lane(
            self._url,
            rank,
            shown=self.shown,
            client=self._client,
            own=self._own,
            fixed_window=self._settings.lane_window,
            page_seconds=self._settings.page_seconds,
            on_change=self._changed,
            on_capacity=self._on_capacity,
        )

    # probes

    async def _probe_safely(self) -> None:
        """Probing must outlive a bug in one round: without it no lane comes back."""
        try:
            await self._probe()
        except Exception:
            logger.exception("probe failed", endpoint=self.shown)

    async def _probe(self) -> None:
        """One round. The lanes share its outcome, for they share the server."""
        asked_at = time.monotonic()
        async with asyncio.TaskGroup() as together:
            health = together.create_task(self._check())
            load = together.create_task(probe_load(self._client))
        if self._removed:
            return
        failure = health.result()
        if failure is None:
            self._passed(load.result(), asked_at)
        else:
            self._failed(failure)
        for lane in (*self.lanes, *self._retired):
            lane.find_stalled()

    async def _check(self) -> ProbeFailed | None:
        """Health, and the model of lanes that come, or come back: it may be another than before."""
        try:
            await probe_health(self._client)
            coming = [lane for lane in self.lanes if lane.health.state.may_come]
            model = await probe_model(self._client) if coming else None
        except ProbeFailed as failure:
            return failure
        if any(lane.model != model for lane in coming):
            for lane in coming:
                lane.model = model
            self._on_lanes()
        return None

    def _passed(self, scrape: Scrape, asked_at: float) -> None:
        self._complaint = None
        self._arrange(scrape)
        self._read(scrape)
        self._check_pins(scrape, asked_at)
        for lane in self.lanes:
            lane.health.probe_passed(time.monotonic())

    def _failed(self, failure: ProbeFailed) -> None:
        if failure.reason != self._complaint:
            self._complaint = failure.reason
            logger.warning("endpoint fails its probes", endpoint=self.shown, reason=failure.reason)
        self._read(Scrape())
        for lane in self.lanes:
            if failure.down:
                lane.health.disconnected(time.monotonic(), failure.reason)
            else:
                lane.health.probe_missed()
            lane.complain(failure.reason)

    async def _pause(self) -> None:
        seconds = self._settings.health_interval_seconds * random.uniform(1 - JITTER, 1 + JITTER)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    # ranks

    def _arrange(self, scrape: Scrape) -> None:
        """One lane for each engine; one for all of them where the server does not heed the pin."""
        states = [lane.health.state for lane in self.lanes]
        if all(state in (LaneState.STARTING, LaneState.OPEN) for state in states):
            self._pins = PinCheck()  # whatever answers there now may be another server
        self._engines.seen(len(scrape.engines), in_use=any(state.takes_pages for state in states))
        engines = self._engines.count
        apart = engines > 1 and not self._pins.ignored
        lanes = list(self.lanes[: engines if apart else 1])
        lanes[0].stand_for(0 if apart else None, 1 if apart else engines)
        retired = self.lanes[len(lanes) :]
        if apart:
            lanes += [self._lane(rank) for rank in range(len(lanes), engines)]
        if len(lanes) == len(self.lanes):
            return
        self._retired = [lane for lane in (*self._retired, *retired) if lane.inflight]
        self.lanes = tuple(lanes)
        for lane in retired:
            lane.siblings = (lane,)
            lane.remove()
        for lane in lanes:
            lane.siblings = self.lanes
            lane.model = lanes[0].model
        logger.info("endpoint's lanes", endpoint=self.shown, engines=engines, lanes=len(lanes))
        self._on_lanes()

    def _read(self, scrape: Scrape) -> None:
        """Each lane takes in the load of its engine; nothing, where the scrape shows another number of them."""
        if len(self.lanes) == len(scrape.engines):
            loads = scrape.engines
        else:
            loads = (scrape.total if len(self.lanes) == 1 else EngineLoad(),) * len(self.lanes)
        for lane, load in zip(self.lanes, loads, strict=True):
            lane.scraped(load)

    def _check_pins(self, scrape: Scrape, asked_at: float) -> None:
        if self._pins.settled or len(scrape.engines) != len(self.lanes) or scrape.total.steps is None:
            return
        for rank, lane in enumerate(self.lanes):
            for began_at in lane.take_pages_read(before=asked_at - COUNTERS_LAG_SECONDS):
                self._pins.page_read(rank, [other.stepped_at >= began_at for other in self.lanes])
        if self._pins.ignored:
            logger.warning("endpoint does not heed the rank that a request names", endpoint=self.shown)
            self._arrange(scrape)
            self._read(scrape)

    def _changed(self) -> None:
        if self._removed and not self._inflight():
            self._idle.set()
        self._on_change()

    def _inflight(self) -> list[Attempt]:
        return [attempt for lane in (*self.lanes, *self._retired) for attempt in lane.inflight]
