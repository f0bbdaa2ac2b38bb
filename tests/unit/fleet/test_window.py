"""The adaptive window, on engines that are formulas: pages a second by the number of requests that run at once."""

from collections.abc import Callable

import pytest

from app.fleet.scrape import EngineLoad
from app.fleet.window import (
    CROWDED_TO_CUT,
    MAX_ATTEMPTS,
    MIN_ATTEMPTS,
    SETTLE_SECONDS,
    START_ATTEMPTS,
    TRIAL_GROWTH,
    AdaptiveWindow,
)

Rate = Callable[[int], float]

SCRAPE_SECONDS = 2.0


def batching(knee: int) -> Rate:
    """Twice the requests, twice the pages, up to the knee; from there on each only takes longer."""
    return lambda running: min(running, knee) * 0.5


class Engine:
    """Runs `slots` requests at once and lets the others wait; the lane always has pages for it."""

    def __init__(self, window: AdaptiveWindow, rate: Rate, slots: int = 10_000) -> None:
        self.window = window
        self.rate = rate
        self.slots = slots
        self.now = 0.0
        self.pages = 0.0

    def read(self, pages: int) -> list[int]:
        """The window after each page."""
        sizes = []
        scraped_at = self.now
        for _ in range(pages):
            inflight = self.window.size
            running = min(inflight, self.slots)
            self.now += 1 / self.rate(running)
            self.window.page_read(self.now, inflight, inflight)
            if self.now >= scraped_at + SCRAPE_SECONDS:
                scraped_at = self.now
                self.window.scraped(self.now, EngineLoad(running=running, waiting=inflight - running))
            sizes.append(self.window.size)
        return sizes


def test_it_doubles_a_round_while_that_brings_pages() -> None:
    engine = Engine(AdaptiveWindow(), batching(knee=128))
    sizes = engine.read(16 + 32 + 64)
    assert [sizes[0], sizes[16], sizes[16 + 32], sizes[-1]] == [16, 32, 64, 128]


@pytest.mark.parametrize("knee", [16, 50, 64, 128])
def test_it_stays_near_the_knee_where_the_engine_never_waits(knee: int) -> None:
    """The engine takes whatever comes and only gets slower: nothing but the throughput tells."""
    sizes = Engine(AdaptiveWindow(), batching(knee)).read(20_000)
    late = sizes[10_000:]
    assert min(late) >= 0.95 * knee
    assert max(late) <= 2 * TRIAL_GROWTH * knee


@pytest.mark.parametrize("slots", [4, 8, 40, 256])
def test_it_follows_the_slots_of_an_engine_that_lets_requests_wait(slots: int) -> None:
    engine = Engine(AdaptiveWindow(), batching(knee=10_000), slots)
    engine.read(5_000)
    late = engine.read(10_000)
    assert min(late) >= slots  # not one slot idle
    assert max(late) <= slots + 8


def test_a_window_that_is_not_used_up_does_not_grow() -> None:
    window = AdaptiveWindow()
    for second in range(100):
        window.page_read(float(second), START_ATTEMPTS - 1, START_ATTEMPTS)
        assert window.size == START_ATTEMPTS


@pytest.mark.parametrize("load", [EngineLoad(kv_usage=0.97), EngineLoad(preemptions=3)])
def test_pressure_on_the_cache_takes_a_quarter(load: EngineLoad) -> None:
    window = AdaptiveWindow()
    window.scraped(0.0, EngineLoad(kv_usage=0.5, preemptions=2))
    assert window.size == START_ATTEMPTS
    window.scraped(SETTLE_SECONDS, load)
    assert window.size == 12


def test_preemptions_of_the_past_do_not_count() -> None:
    window = AdaptiveWindow()
    window.scraped(0.0, EngineLoad(preemptions=100))
    window.scraped(10.0, EngineLoad(preemptions=100))
    window.scraped(20.0, EngineLoad(preemptions=0))  # it was started again
    assert window.size == START_ATTEMPTS


def test_a_burst_of_refusals_is_one_sign_and_further_ones_go_down_to_the_least() -> None:
    window = AdaptiveWindow()
    for _ in range(16):
        window.refused(1.0)
    assert window.size == 12
    for round_ in range(1, 20):
        window.refused(1.0 + round_ * SETTLE_SECONDS)
    assert window.size == MIN_ATTEMPTS


def test_a_long_line_takes_a_quarter_at_most_and_only_when_it_lasts() -> None:
    window = AdaptiveWindow()
    for scrape in range(CROWDED_TO_CUT - 1):
        window.scraped(scrape * 2.0, EngineLoad(waiting=100))
    window.scraped(20.0, EngineLoad(waiting=0))
    window.scraped(22.0, EngineLoad())
    assert window.size == START_ATTEMPTS
    for scrape in range(CROWDED_TO_CUT):
        window.scraped(30.0 + scrape * 2.0, EngineLoad(waiting=100))
    assert window.size == 12


def test_it_has_an_upper_bound_and_all_bounds_are_by_engine() -> None:
    window = AdaptiveWindow(engines=2)
    assert window.size == 2 * START_ATTEMPTS
    Engine(window, batching(knee=10_000)).read(40_000)
    assert window.size == 2 * MAX_ATTEMPTS


def test_it_recovers_after_a_cut() -> None:
    engine = Engine(AdaptiveWindow(), batching(knee=64))
    engine.read(5_000)
    before = engine.window.size
    engine.window.refused(engine.now)
    assert engine.window.size <= before * 0.75
    engine.read(5_000)
    assert engine.window.size >= 60
