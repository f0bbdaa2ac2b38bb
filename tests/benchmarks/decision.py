"""What a decision costs: the time of `acquire` and `release`, with all the bookkeeping of both.

By itself: `python -m tests.benchmarks.decision`.
"""

import asyncio
import random
import statistics
import time
from pathlib import Path

import structlog

from app.fleet import Attempt, Fleet, LaneState
from app.settings import Settings

LANES = (8, 64, 1000)
GOAL_SECONDS = {64: 20e-6, 1000: 300e-6}
WINDOW = 8
DECISIONS = 5_000


def serves(model: str) -> bool:
    return model == "model"


async def busy_fleet(lanes: int) -> tuple[Fleet, list[Attempt]]:
    """Lanes that are up, of various speeds, seven eighths full; nobody listens at their addresses."""
    fleet = Fleet(Settings(lane_window=WINDOW, health_interval_seconds=3600))
    for number in range(lanes):
        fleet.add_endpoint(f"http://127.0.0.1:9/{number}", own=True)
    for endpoint in fleet._endpoints.values():
        for lane in endpoint.lanes:
            lane.model = "model"
            lane.health.probe_passed(0.0)
            lane.succeeded(0.0, random.uniform(1.0, 2.0))
    assert all(lane.state is LaneState.UP for lane in fleet.lanes())
    fleet._lanes_changed()
    attempts = [fleet.acquire(serves) for _ in range(lanes * WINDOW * 7 // 8)]
    return fleet, [attempt for attempt in attempts if attempt is not None]


def decide(fleet: Fleet, attempts: list[Attempt]) -> list[float]:
    """Seconds of each decision: one attempt ends, and another takes the slot that is best then."""
    seconds = []
    for _ in range(DECISIONS):
        place = random.randrange(len(attempts))
        started = time.perf_counter()
        attempts[place].release()
        attempt = fleet.acquire(serves)
        seconds.append(time.perf_counter() - started)
        assert attempt is not None
        attempts[place] = attempt
    return seconds


async def decision(_: Path | None = None) -> None:
    """Print the cost of a decision for each number of lanes."""
    print("decision + release, with bookkeeping and metrics")
    for lanes in LANES:
        with structlog.testing.capture_logs():  # a line a lane would stand between the figures
            fleet, attempts = await busy_fleet(lanes)
            seconds = sorted(decide(fleet, attempts))
        median, late = statistics.median(seconds), seconds[len(seconds) * 99 // 100]
        goal = f"   (goal {GOAL_SECONDS[lanes] * 1e6:.0f} µs)" if lanes in GOAL_SECONDS else ""
        print(f"  {lanes:5d} lanes: median {median * 1e6:6.1f} µs   p99 {late * 1e6:6.1f} µs{goal}")
        with structlog.testing.capture_logs():
            for attempt in attempts:
                attempt.release()
            await fleet.stop()


if __name__ == "__main__":
    asyncio.run(decision())
