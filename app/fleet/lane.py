"""A lane: the router's view of one replica, with its window, its attempts in flight and what they taught."""

import asyncio
import hashlib
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from app.errors import (
    AttemptAborted,
    AttemptError,
    AttemptStalled,
    AttemptTimeout,
    LaneFault,
    LaneFull,
    LaneUnreachable,
)
from app.fleet.foreign import ForeignLoad
from app.fleet.health import Health, LaneState
from app.fleet.scrape import Scrape
from app.telemetry import metrics
from app.telemetry.logs import get_logger

if TYPE_CHECKING:
    from app.fleet.attempt import Attempt

logger = get_logger(__name__)

DEFAULT_WINDOW = 16
"""Attempts in flight on a replica that states no slots: enough to batch, few enough to lose with it."""
CHARGE_SECONDS = 10.0
"""How long a failure counts as load. A lane that fails in 20 ms drew 83 % of all pages without it, 7 % with it."""
MIN_STALL_SECONDS = 20.0
STALL_PAGES = 4.0
"""Silence of a lane that has read a page counts as a stall after this many of its page times."""
FIRST_STALL_SHARE = 0.25
"""Share of an attempt's time that silence may last before the lane has read its first page."""
SMOOTHING = 0.2
"""Weight of the newest page in the moving average of seconds per page."""


def lane_id(endpoint: str, rank: int | None) -> str:
    """The same on every gateway: first 12 hex digits of sha256(base URL), `-`, rank."""
    return f"{hashlib.sha256(endpoint.encode()).hexdigest()[:12]}-{rank or 0}"


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane at one moment, for people and for placing work; changes nothing."""

    id: str
    endpoint: str
    """Base URL, without credentials."""
    rank: int | None
    model: str | None
    """None until the replica has said it."""
    state: LaneState
    window: int
    """Attempts that it may have in flight when it is up."""
    inflight: int
    charged: int
    """Recent failures that count as load in the choice."""
    foreign: float
    """Estimated requests of other clients."""
    seconds_per_page: float | None
    """Moving average; None: no page read yet."""
    own: bool
    """Started by this gateway."""


class Lane:
    """One replica; lives in the event loop.

    `on_change` is called when a slot may have become free, `on_capacity` when `capacity` may have changed.
    """

    def __init__(
        self,
        endpoint: str,
        rank: int | None = None,
        *,
        shown: str,
        client: httpx.AsyncClient,
        own: bool,
        fixed_window: int | None,
        page_seconds: float,
        on_change: Callable[[], None],
        on_capacity: Callable[[], None],
    ) -> None:
        """`shown` is the endpoint without credentials, `client` its HTTP client, `page_seconds` an attempt's time."""
        self.id = lane_id(endpoint, rank)
        self.endpoint = shown
        self.rank = rank
        self.client = client
        self.own = own
        self.page_seconds = page_seconds
        self.model: str | None = None
        self.inflight: set[Attempt] = set()
        self.seconds_per_page: float | None = None
        self.foreign = ForeignLoad()
        self.health = Health(self._entered, slow_start=not own)
        self._fixed_window = fixed_window
        self._stated_slots: int | None = None
        self._share: int | None = None
        self._on_change = on_change
        self._on_capacity = on_capacity
        self._full_until = 0.0
        self._charges: deque[float] = deque()
        self._steps: float | None = None
        self._stepped_at = -math.inf
        self._up_gauge = metrics.LANE_UP.labels(self.id)
        self._inflight_gauge = metrics.LANE_INFLIGHT.labels(self.id)
        self._window_gauge = metrics.LANE_WINDOW.labels(self.id)
        self._window_gauge.set(self.window)
        self._share_gauge = metrics.LANE_SHARE.labels(self.id)
        self._share_gauge.set(self.window)

    @property
    def window(self) -> int:
        return self._fixed_window or self._stated_slots or DEFAULT_WINDOW

    @property
    def capacity(self) -> int:
        """Attempts that all gateways together may have in flight now, but for slow starts and half-open lanes."""
        return self.window if self.health.state.takes_pages else 0

    @property
    def share(self) -> int | None:
        """Slots of the window that are this gateway's; None: all."""
        return self._share

    @share.setter
    def share(self, slots: int | None) -> None:
        self._share = slots
        self._share_gauge.set(self.window if slots is None else slots)

    @property
    def allowed(self) -> int:
        """Attempts that this gateway may have in flight now."""
        allowed = self.health.allowed(self.window)
        return allowed if self._share is None else min(allowed, self._share)

    @property
    def stall_seconds(self) -> float:
        """Longest silence of an attempt while the engine shows no other sign of life."""
        if self.seconds_per_page is None:
            return self.page_seconds * FIRST_STALL_SHARE
        return min(self.page_seconds, max(MIN_STALL_SECONDS, STALL_PAGES * self.seconds_per_page))

    def free(self, now: float) -> int:
        """Attempts that may be added."""
        return 0 if now < self._full_until else max(0, self.allowed - len(self.inflight))

    def takes_one(self, now: float) -> bool:
        """Whether an attempt may be added, were the lane not shared."""
        return now >= self._full_until and len(self.inflight) < self.health.allowed(self.window)

    def charged(self, now: float) -> int:
        while self._charges and self._charges[0] <= now:
            self._charges.popleft()
        return len(self._charges)

    def load(self, now: float) -> float:
        return len(self.inflight) + self.charged(now) + self.foreign.requests

    def remaining_seconds(self, now: float) -> float:
        expected = self.seconds_per_page or 0.0
        return sum(max(0.0, expected - (now - attempt.started_at)) for attempt in self.inflight)

    def view(self) -> LaneView:
        return LaneView(
            id=self.id,
            endpoint=self.endpoint,
            rank=self.rank,
            model=self.model,
            state=self.health.state,
            window=self.window,
            inflight=len(self.inflight),
            charged=self.charged(time.monotonic()),
            foreign=self.foreign.requests,
            seconds_per_page=self.seconds_per_page,
            own=self.own,
        )

    # what attempts report

    def acquire(self, attempt: "Attempt") -> None:
        self.inflight.add(attempt)
        self.foreign.sent(len(self.inflight))
        self._inflight_gauge.set(len(self.inflight))

    def release(self, attempt: "Attempt", outcome: str) -> None:
        """Called exactly once an attempt; `outcome` is `succeeded`, `cancelled` or an error code."""
        self.inflight.remove(attempt)
        self._inflight_gauge.set(len(self.inflight))
        if self.health.state is not LaneState.DRAINING:
            metrics.ATTEMPTS.labels(self.id, outcome).inc()
        self._on_change()

    def charge(self) -> None:
        """Count a failure as load for a while; in the choice only, never against the window."""
        self._charges.append(time.monotonic() + CHARGE_SECONDS)

    def succeeded(self, seconds: float) -> None:
        average = self.seconds_per_page
        self.seconds_per_page = seconds if average is None else average + SMOOTHING * (seconds - average)
        self.health.page_read(self.window)

    def failed(self, error: AttemptError) -> None:
        now = time.monotonic()
        if error.charged:
            self.charge()
        match error:
            case LaneUnreachable():
                self.health.disconnected(now, error.code())
            case LaneFull():
                self._pause(now, error.extra["retry_after"])
            case AttemptAborted() | AttemptStalled():
                self.health.doubt(now, error.code())
            case LaneFault() | AttemptTimeout():
                self.health.fault(now, error.code())

    # what probes report

    def scraped(self, scrape: Scrape) -> None:
        """Take in a reading of the replica's metrics; an empty one if they could not be read."""
        now = time.monotonic()
        window = self.window
        if scrape.slots is not None:
            self._stated_slots = scrape.slots
            self.health.slow_start = False
        if scrape.steps != self._steps and None not in (scrape.steps, self._steps):
            self._stepped_at = now
        self._steps = scrape.steps
        self.foreign.scraped(None if self.own else scrape.requests, len(self.inflight))
        if self.window != window:
            self._window_gauge.set(self.window)
            self.share = self._share
            self._on_capacity()

    def end_stalled(self) -> None:
        """Fail the attempts that were silent for too long while the engine did not step, or can't be seen to."""
        now = time.monotonic()
        limit = self.stall_seconds
        if now - self._stepped_at > limit:
            for attempt in self.inflight:
                if now - attempt.progress_at > limit:
                    attempt.end(AttemptStalled())

    def remove(self) -> None:
        """No new attempts; its series end."""
        self.health.removed()
        for gauge in (metrics.LANE_UP, metrics.LANE_INFLIGHT, metrics.LANE_WINDOW, metrics.LANE_SHARE):
            gauge.remove_by_labels({"lane": self.id})
        for counter in (metrics.ATTEMPTS, metrics.LANE_TRANSITIONS):
            counter.remove_by_labels({"lane": self.id})

    def _pause(self, now: float, seconds: float) -> None:
        self._full_until = max(self._full_until, now + seconds)
        asyncio.get_running_loop().call_later(seconds, self._on_change)

    def _entered(self, state: LaneState, reason: str) -> None:
        level = logger.info if state.takes_pages or state is LaneState.DRAINING else logger.warning
        level("lane state", lane=self.id, endpoint=self.endpoint, state=state.value, reason=reason)
        metrics.LANE_TRANSITIONS.labels(self.id, state.value).inc()
        self._up_gauge.set(state.takes_pages)
        self._on_capacity()
        self._on_change()
