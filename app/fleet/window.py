"""The window of a lane whose replica does not state its slots: learnt from what the replica does. No I/O; no clock."""

from app.fleet.scrape import EngineLoad

START_ATTEMPTS = 16
"""An engine's first window: enough to batch, few enough to lose with it."""
MIN_ATTEMPTS = 1
MAX_ATTEMPTS = 512
"""An engine's widest window. vLLM batches at most 256 requests by default, 1,024 on the largest GPUs, and both are far
above where its throughput stops to rise with a page's image in each."""
WORTHWHILE = 0.2
"""Share of a growth that must show as throughput: a window that is twice as wide has to bring a fifth more pages."""
TRIAL_GROWTH = 1.25
"""One by one, a window grows this much before its throughput is judged: single steps drown in the noise."""
CUT = 0.75
"""What is left of a window that was too wide."""
CROWD_REQUESTS = 2
"""Requests that may wait at an engine: they hide the time between two pages of a slot."""
CROWDED_TO_HOLD = 2
"""Scrapes in a row with a crowd that end the growth; one sees what was sent just before it."""
CROWDED_TO_CUT = 3
KV_PRESSURE = 0.95
"""Share of the KV cache in use above which an engine is about to put requests back."""
SETTLE_SECONDS = 5.0
"""After a cut: no further one before its effect can be seen, which takes this or a page's time."""


class AdaptiveWindow:
    """Doubles with each round of pages until the engine lets requests wait or more of them bring no more pages a
    second; then grows by one a round. Times are seconds of any monotonic clock.

    A round is as many pages as may be in flight, all read while the lane was full: a window that is not used up says
    nothing. One that grew in vain goes back to where it was.
    """

    def __init__(self, engines: int = 1) -> None:
        self.size = START_ATTEMPTS * engines
        """Attempts that may be in flight."""
        self._engines = engines
        self._doubling = True
        self._proven: tuple[int, float] | None = None  # the last window that was worth its growth, and its pages/s
        self._pages = 0
        self._round_began = 0.0
        self._round_seconds = 0.0
        self._crowded = 0
        self._preemptions: float | None = None
        self._settled_at = 0.0

    def page_read(self, now: float, inflight: int, allowed: int) -> None:
        """A page was read while `inflight` attempts, of `allowed`, were in flight."""
        if inflight < allowed:
            self._begin_round(now)
            return
        self._pages += 1
        if self._pages < max(allowed, 2) or now <= self._round_began:
            return
        self._round_seconds = now - self._round_began
        if self._crowded < CROWDED_TO_HOLD:
            self._grow(self._pages / self._round_seconds)
        self._begin_round(now)

    def refused(self, now: float) -> None:
        """The replica had no room (429 or 503)."""
        self._cut(now, int(self.size * CUT))

    def scraped(self, now: float, load: EngineLoad) -> None:
        """What the replica shows; what it does not state has no effect."""
        crowd = (load.waiting or 0) - CROWD_REQUESTS * self._engines
        self._crowded = self._crowded + 1 if crowd > 0 else 0
        if self._crowded >= CROWDED_TO_HOLD:
            self._doubling = False
        if self._crowded >= CROWDED_TO_CUT:
            self._cut(now, max(int(self.size * CUT), self.size - int(crowd)))
        if (load.kv_usage or 0) > KV_PRESSURE or self._preempted(load.preemptions):
            self._cut(now, int(self.size * CUT))

    def _preempted(self, preemptions: float | None) -> bool:
        if preemptions is None:
            return False
        before, self._preemptions = self._preemptions, preemptions
        return before is not None and preemptions > before

    def _begin_round(self, now: float) -> None:
        self._pages = 0
        self._round_began = now

    def _grow(self, rate: float) -> None:
        """After a round with `rate` pages a second."""
        if self._proven is None:
            self._proven = self.size, rate
        size, proven_rate = self._proven
        growth = self.size / size
        if growth > 1 and (self._doubling or growth >= TRIAL_GROWTH):
            if rate < proven_rate * (1 + WORTHWHILE * (growth - 1)):
                self.size = size
                self._doubling = False
                self._proven = None  # to be measured again: pages differ, and so does what they cost
                return
            self._proven = self.size, rate
        self.size = min(MAX_ATTEMPTS * self._engines, self.size * 2 if self._doubling else self.size + 1)

    def _cut(self, now: float, size: int) -> None:
        if now < self._settled_at:
            return
        self.size = max(MIN_ATTEMPTS * self._engines, size)
        self._doubling = False
        self._proven = None
        self._crowded = 0
        self._settled_at = now + max(SETTLE_SECONDS, self._round_seconds)
        self._begin_round(now)
