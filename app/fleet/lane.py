"""A lane: the router's view of one replica, with its window, its attempts in flight and what they taught."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
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
    RankUnknown,
)
from app.fleet.foreign import ForeignLoad
from app.fleet.health import Health, LaneState
from app.fleet.lane_meters import LaneMeters
from app.fleet.scrape import EngineLoad
from app.fleet.view import LaneView, lane_id
from app.fleet.window import AdaptiveWindow
from app.telemetry.logs import get_logger

if TYPE_CHECKING:
    from app.fleet.attempt import Attempt

logger = get_logger(__name__)

CHARGE_SECONDS = 10.0
"""How long a failure counts as load. A lane that fails in 20 ms drew 83 % of all pages without it, 7 % with it."""
MIN_STALL_SECONDS = 20.0
STALL_PAGES = 4.0
"""Silence of a lane that has read a page counts as a stall after this many of its page times."""
FIRST_STALL_SHARE = 0.25
"""Share of an attempt's time that silence may last before the lane has read its first page."""
SMOOTHING = 0.2
"""Weight of the newest page in the moving average of seconds per page."""


class Lane:
    """One replica; lives in the event loop.

    `on_change` is called when a slot may have become free, `on_capacity` when `capacity` may have changed. What the
    choice looks at, `has_room` and `load`, is kept up to date by whatever changes it: there are many lanes to look at.
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
        self.engines = 1
        self.client = client
        self.own = own
        self.page_seconds = page_seconds
        self.siblings: Sequence[Lane] = (self,)
        """The lanes of its server, itself among them: what the server suffers they all do."""
        self.model: str | None = None
        self.inflight: set[Attempt] = set()
        self.has_room = False
        self.load = 0.0
        self.seconds_per_page: float | None = None
        self.stepped_at = -math.inf
        """When the engine was last seen to have worked."""
        self.foreign = ForeignLoad()
        self.health = Health(self._entered, slow_start=not own)
        self.reason = "not probed yet"
        self._since = datetime.now(UTC)
        self._fixed_window = fixed_window
        self._stated_slots: int | None = None
        self._adaptive_window = AdaptiveWindow()
        self._share: int | None = None
        self._on_change = on_change
        self._on_capacity = on_capacity
        self._pauses = 0
        self._charges = 0
        self._due = 0.0
        self._steps: float | None = None
        self._pages_read: list[tuple[float, float]] = []
        self._attempts = 0
        self._failures = 0
        self._known_window = self.window
        self._meters = LaneMeters(self)

    @property
    def window(self) -> int:
        return self._fixed_window or self._stated_slots or self._adaptive_window.size

    @property
    def capacity(self) -> int:
        """Attempts that all gateways together may have in flight now, but for slow starts and half-open lanes."""
        return self.window if self.health.state.takes_pages else 0

    @property
    def share(self) -> int:
        """Slots of the window that are this gateway's."""
        return self.window if self._share is None else self._share

    def set_share(self, slots: int | None) -> None:
        """None: all, however the window changes."""
        self._share = slots
        self._update()

    @property
    def allowed(self) -> int:
        """Attempts that this gateway may have in flight now."""
        allowed = self.health.allowed(self.window)
        return allowed if self._share is None else min(allowed, self._share)

    @property
    def free(self) -> int:
        """Attempts that may be added."""
        return 0 if self._pauses else max(0, self.allowed - len(self.inflight))

    @property
    def takes_one(self) -> bool:
        """Whether an attempt may be added, were the lane not shared."""
        return not self._pauses and len(self.inflight) < self.health.allowed(self.window)

    @property
    def pace_seconds(self) -> float | None:
        """Seconds per page of one slot, as if all engines worked on it together; None: no page read yet."""
        return None if self.seconds_per_page is None else self.seconds_per_page / self.engines

    @property
    def stall_seconds(self) -> float:
        """Longest silence of an attempt while the engine shows no other sign of life."""
        if self.seconds_per_page is None:
            return self.page_seconds * FIRST_STALL_SHARE
        return min(self.page_seconds, max(MIN_STALL_SECONDS, STALL_PAGES * self.seconds_per_page))

    def remaining_seconds(self, now: float) -> float:
        """Until the attempts in flight are due, added up; one that is overdue counts as minus what it is late."""
        return self._due - len(self.inflight) * now

    def view(self) -> LaneView:
        return LaneView(
            id=self.id,
            endpoint=self.endpoint,
            rank=self.rank,
            engines=self.engines,
            model=self.model,
            state=self.health.state,
            reason=self.reason,
            since=self._since,
            window=self.window,
            share=self.share,
            inflight=len(self.inflight),
            attempts=self._attempts,
            failures=self._failures,
            charged=self._charges,
            foreign=self.foreign.requests,
            seconds_per_page=self.seconds_per_page,
            own=self.own,
        )

    # what attempts report

    def acquire(self, attempt: "Attempt") -> None:
        attempt.due_at = attempt.started_at + (self.seconds_per_page or 0.0)
        self._due += attempt.due_at
        self.inflight.add(attempt)
        self.foreign.sent(len(self.inflight))
        self._update()

    def release(self, attempt: "Attempt", outcome: str) -> None:
        """Called exactly once an attempt; `outcome` is `succeeded`, `cancelled` or an error code."""
        self.inflight.remove(attempt)
        self._due = self._due - attempt.due_at if self.inflight else 0.0
        self._attempts += 1
        self._failures += outcome not in ("succeeded", "cancelled")
        self._meters.attempt_ended(outcome)
        self._update()
        self._on_change()

    def charge(self) -> None:
        """Count a failure as load for a while; in the choice only, never against the window."""
        self._charges += 1
        self._update()
        asyncio.get_running_loop().call_later(CHARGE_SECONDS, self._discharge)

    def succeeded(self, started_at: float, seconds: float) -> None:
        now = time.monotonic()
        average = self.seconds_per_page
        self.seconds_per_page = seconds if average is None else average + SMOOTHING * (seconds - average)
        if self.rank is not None:
            self._pages_read.append((started_at, now))
        if self.health.state is LaneState.UP:
            self._adaptive_window.page_read(now, len(self.inflight), self.allowed)
            self._resize()
        self.health.page_read(self.window)
        self._update()

    def failed(self, error: AttemptError) -> None:
        """What the server suffers all its lanes do; a stall, or a page that takes too long, is one engine's own."""
        now, code = time.monotonic(), error.code()
        if error.charged:
            self.charge()
        match error:
            case LaneUnreachable():
                self._disconnect(self.siblings, now, code)
            case RankUnknown():
                self._disconnect((self,), now, code)
            case LaneFull():
                for lane in self.siblings:
                    lane.full(now, error.extra["retry_after"])
            case AttemptAborted():
                for lane in self.siblings:
                    lane.health.doubt(now, code)
            case AttemptStalled():
                self._meters.stalled()
                self.health.doubt(now, code)
            case LaneFault():
                if self.health.fault(now, code):
                    self._disconnect(self.siblings, now, code)
            case AttemptTimeout():
                self.health.fault(now, code)

    def full(self, now: float, pause_seconds: float) -> None:
        """The server had no room: nothing is sent there for a while, and less at once from then on."""
        self._adaptive_window.refused(now)
        self._pauses += 1
        self._resize()
        asyncio.get_running_loop().call_later(pause_seconds, self._unpause)

    # what probes report

    def scraped(self, load: EngineLoad) -> None:
        """Take in a reading of the replica's metrics; an empty one if they could not be read."""
        now = time.monotonic()
        if load.slots is not None:
            self._stated_slots = load.slots
            self.health.slow_start = False
        if load.steps is not None:
            if self._steps not in (None, load.steps):
                self.stepped_at = now
            self._steps = load.steps
        self.foreign.scraped(None if self.own else load.requests, len(self.inflight))
        self._adaptive_window.scraped(now, load)
        self._resize()

    def take_pages_read(self, before: float) -> list[float]:
        """When those pages began that have ended by `before`, each told once."""
        began = [began for began, ended in self._pages_read if ended <= before]
        self._pages_read = [page for page in self._pages_read if page[1] > before]
        return began

    def find_stalled(self) -> None:
        """Tell the attempts that were silent for too long while the engine did not step, or can't be seen to."""
        now = time.monotonic()
        limit = self.stall_seconds
        if now - self.stepped_at > limit:
            for attempt in list(self.inflight):
                if now - attempt.progress_at > limit:
                    attempt.stall()

    def complain(self, reason: str) -> None:
        """A probe failed for `reason`: why the lane takes no pages, if it takes none."""
        if self.health.state.may_come:
            self.reason = reason

    # what the endpoint decides

    def stand_for(self, rank: int | None, engines: int) -> None:
        """Send to the engine `rank` of the server; None: to any of its `engines`."""
        if (rank, engines) != (self.rank, self.engines):
            self.rank, self.engines = rank, engines
            self._pages_read.clear()
            self.foreign = ForeignLoad()
            self.foreign.sent(len(self.inflight))
            self._stated_slots = None
            self._adaptive_window = AdaptiveWindow(engines)
            self._resize()

    def remove(self) -> None:
        """No new attempts; its series end."""
        self.health.drained("removed")
        self._meters.remove()

    def _disconnect(self, lanes: "Sequence[Lane]", now: float, reason: str) -> None:
        for lane in lanes:
            lane.health.disconnected(now, reason)

    def _discharge(self) -> None:
        self._charges -= 1
        self._update()

    def _unpause(self) -> None:
        self._pauses -= 1
        self._update()
        self._on_change()

    def _resize(self) -> None:
        """The window may be another."""
        self._update()
        if self._known_window != self.window:
            self._known_window = self.window
            self._on_capacity()

    def _update(self) -> None:
        inflight = len(self.inflight)
        self.load = inflight + self._charges + self.foreign.requests
        self.has_room = not self._pauses and inflight < self.allowed

    def _entered(self, state: LaneState, reason: str) -> None:
        level = logger.info if state.takes_pages or state is LaneState.DRAINING else logger.warning
        level("lane state", lane=self.id, endpoint=self.endpoint, state=state.value, reason=reason)
        self.reason, self._since = reason, datetime.now(UTC)
        self._meters.entered(state)
        self._update()
        self._on_capacity()
        self._on_change()
