"""The health of a lane: a state machine fed by probes and attempts. No I/O; the clock is passed in."""

import random
from collections.abc import Callable
from enum import StrEnum

FAULTS_TO_OPEN = 2
"""Faults in a row that open a lane: with one, a single bad page would do it; five lose pages to a fail-fast lane."""
MISSED_TO_SUSPECT = 3
"""Probes in a row without an answer in time; a busy server may miss one."""
PASSES_TO_RECOVER = 2
"""Passing probes in a row that end the open time early when the lane was opened by a failed connection."""
OPEN_SECONDS = 2.0
"""Open time of the first opening; it doubles with each further one until the lane is up again."""
MAX_OPEN_SECONDS = 60.0


class LaneState(StrEnum):
    """Where a lane stands. Only in `probation`, `up` and `half_open` it takes pages."""

    STARTING = "starting"
    """No probe has passed yet."""
    PROBATION = "probation"
    """Healthy, but its window is not yet earned."""
    UP = "up"
    SUSPECT = "suspect"
    """It hangs or is going down; the next passing probe makes it half-open."""
    OPEN = "open"
    """It failed; no pages until its open time is over and a probe passes."""
    HALF_OPEN = "half_open"
    """One attempt decides: back to probation or open again."""
    DRAINING = "draining"
    """Drained by command, or removed: attempts in flight go on, none is added. Only a command ends it."""

    @property
    def takes_pages(self) -> bool:
        return self in (LaneState.PROBATION, LaneState.UP, LaneState.HALF_OPEN)

    @property
    def may_come(self) -> bool:
        """It takes no pages, and would if probes passed."""
        return self in (LaneState.STARTING, LaneState.SUSPECT, LaneState.OPEN)


class Health:
    """State of one lane. Times are seconds of any monotonic clock.

    `on_enter` is called with each state entered and the reason. With `slow_start` a lane in probation gets one attempt
    at a time, doubling with each page read; without it, the whole window at once.
    """

    def __init__(self, on_enter: Callable[[LaneState, str], None], *, slow_start: bool = True) -> None:
        self.state = LaneState.STARTING
        self.slow_start = slow_start
        self._on_enter = on_enter
        self._earned = 1
        self._faults = 0
        self._missed = 0
        self._passed = 0
        self._open_seconds = OPEN_SECONDS
        self._open_until = 0.0
        self._disconnected = False

    def allowed(self, window: int) -> int:
        """Attempts that may be in flight, of `window` at most."""
        match self.state:
            case LaneState.UP:
                return window
            case LaneState.PROBATION:
                return min(window, self._earned) if self.slow_start else window
            case LaneState.HALF_OPEN:
                return 1
            case _:
                return 0

    def probe_passed(self, now: float) -> None:
        self._missed = 0
        self._passed += 1
        match self.state:
            case LaneState.STARTING:
                self._enter(LaneState.PROBATION, "probe passed")
            case LaneState.SUSPECT:
                self._enter(LaneState.HALF_OPEN, "probe passed")
            case LaneState.OPEN:
                back = self._disconnected and self._passed >= PASSES_TO_RECOVER
                if back or now >= self._open_until:
                    self._enter(LaneState.HALF_OPEN, "probe passed")

    def probe_missed(self) -> None:
        """A probe had no answer in time."""
        self._passed = 0
        self._missed += 1
        if self._missed >= MISSED_TO_SUSPECT and self.state.takes_pages:
            self._enter(LaneState.SUSPECT, "probes unanswered")

    def disconnected(self, now: float, reason: str) -> None:
        """Nobody answers there: a connection was refused or reset, or the process is known to be dead."""
        self._passed = 0
        if self.state.takes_pages or self.state is LaneState.SUSPECT:
            self._open(now, reason, disconnected=True)

    def fault(self, now: float, reason: str) -> bool:
        """An attempt failed by the lane's own fault. Whether that opened a lane that was in good standing."""
        self._faults += 1
        in_use = self.state in (LaneState.PROBATION, LaneState.UP)
        if self.state is LaneState.HALF_OPEN or (in_use and self._faults >= FAULTS_TO_OPEN):
            self._open(now, reason, disconnected=False)
        return in_use and self.state is LaneState.OPEN

    def doubt(self, now: float, reason: str) -> None:
        """An attempt stalled, or the replica ended it itself."""
        if self.state is LaneState.HALF_OPEN:
            self._open(now, reason, disconnected=False)
        elif self.state.takes_pages:
            self._enter(LaneState.SUSPECT, reason)

    def page_read(self, window: int) -> None:
        """An attempt got its whole answer."""
        self._faults = 0
        match self.state:
            case LaneState.HALF_OPEN | LaneState.SUSPECT:
                self._enter(LaneState.PROBATION, "page read")
            case LaneState.PROBATION:
                self._earned *= 2
                if not self.slow_start or self._earned >= window:
                    self._open_seconds = OPEN_SECONDS
                    self._enter(LaneState.UP, "page read")

    def restarted(self) -> None:
        """The process behind the lane is a new one: what was known of the old one says nothing."""
        if self.state not in (LaneState.STARTING, LaneState.DRAINING):
            self._open_seconds = OPEN_SECONDS
            self._enter(LaneState.STARTING, "restarted")

    def drained(self, reason: str) -> None:
        """No attempt is to be added until `resumed`."""
        if self.state is not LaneState.DRAINING:
            self._enter(LaneState.DRAINING, reason)

    def resumed(self) -> None:
        """A drained lane may take pages again. What was done to it meanwhile nobody knows: it starts anew."""
        if self.state is LaneState.DRAINING:
            self._open_seconds = OPEN_SECONDS
            self._enter(LaneState.STARTING, "resumed")

    def _open(self, now: float, reason: str, *, disconnected: bool) -> None:
        # lanes that fell together should not rise together
        self._open_until = now + self._open_seconds * random.uniform(1.0, 1.1)
        self._open_seconds = min(MAX_OPEN_SECONDS, 2 * self._open_seconds)
        self._disconnected = disconnected
        self._enter(LaneState.OPEN, reason)

    def _enter(self, state: LaneState, reason: str) -> None:
        self.state = state
        self._earned = 1
        self._faults = self._missed = self._passed = 0
        self._on_enter(state, reason)
