"""What others do, and the bound: one queue in front of all slots.

Each takes pages in the order of their arrival and gives their stays in the same order.
"""

import heapq
import math
import random
from collections import Counter, deque
from collections.abc import Callable, Sequence

from app.worker.fair_queue import FairQueue
from tests.benchmarks.simulation.traffic import Page, Replica, Stay


class _Lane:
    """A replica with a queue of its own, first come, first served."""

    def __init__(self, replica: Replica) -> None:
        self.slowness = replica.slowness
        self._free_at = [0.0] * replica.slots
        self._ends: list[float] = []

    def present(self, now: float) -> int:
        """Pages running and waiting."""
        while self._ends and self._ends[0] <= now:
            heapq.heappop(self._ends)
        return len(self._ends)

    def take(self, page: Page) -> Stay:
        start = max(page.arrival, self._free_at[0])
        end = start + page.seconds * self.slowness
        heapq.heapreplace(self._free_at, end)
        heapq.heappush(self._ends, end)
        return Stay(start - page.arrival, end - page.arrival)


Pick = Callable[[list[_Lane], float], _Lane]


def at_random(generator: random.Random) -> Pick:
    return lambda lanes, now: generator.choice(lanes)


def round_robin(generator: random.Random) -> Pick:
    turns: deque[_Lane] = deque()

    def pick(lanes: list[_Lane], now: float) -> _Lane:
        if not turns:
            turns.extend(lanes)
        return turns.popleft()

    return pick


def two_choices(generator: random.Random) -> Pick:
    """The shorter queue of two lanes picked at random (P2C)."""
    return lambda lanes, now: min(generator.sample(lanes, 2), key=lambda lane: lane.present(now))


def shortest_queue(generator: random.Random) -> Pick:
    """Join the shortest queue (JSQ), with exact counts of all lanes."""
    return lambda lanes, now: min(lanes, key=lambda lane: (lane.present(now), generator.random()))


def pushed(pages: Sequence[Page], replicas: Sequence[Replica], pick: Pick) -> list[Stay]:
    """Every page goes to a lane as it arrives."""
    lanes = [_Lane(replica) for replica in replicas]
    return [pick(lanes, page.arrival).take(page) for page in pages]


def central_queue(pages: Sequence[Page], replicas: Sequence[Replica]) -> list[Stay]:
    """One queue, in the order of arrival, for whichever slot is free: the fastest, if several are."""
    idle = sorted(replica.slowness for replica in replicas for _ in range(replica.slots))
    busy: list[tuple[float, float]] = []
    stays = []
    for page in pages:
        while busy and busy[0][0] <= page.arrival:
            heapq.heappush(idle, heapq.heappop(busy)[1])
        start, slowness = (page.arrival, heapq.heappop(idle)) if idle else heapq.heappop(busy)
        end = start + page.seconds * slowness
        heapq.heappush(busy, (end, slowness))
        stays.append(Stay(start - page.arrival, end - page.arrival))
    return stays


def fair_central_queue(pages: Sequence[Page], replicas: Sequence[Replica]) -> list[Stay]:
    """The same with documents taking turns; all slots have speed 1."""
    free = sum(replica.slots for replica in replicas)
    queue: FairQueue[int] = FairQueue()
    unended = Counter[str]()
    ends: list[tuple[float, int]] = []
    stays: dict[int, Stay] = {}

    def serve(now: float) -> None:
        nonlocal free
        while free and (index := next(iter(queue.in_order()), None)) is not None:
            queue.serve(pages[index].claim)
            free -= 1
            wait, seconds = now - pages[index].arrival, pages[index].seconds
            stays[index] = Stay(wait, wait + seconds)
            heapq.heappush(ends, (now + seconds, index))

    def end_until(now: float) -> None:
        nonlocal free
        while ends and ends[0][0] <= now:
            end, index = heapq.heappop(ends)
            free += 1
            unended[pages[index].document] -= 1
            if not unended[pages[index].document]:
                queue.forget(pages[index].claim)
            serve(end)

    for index, page in enumerate(pages):
        end_until(page.arrival)
        unended[page.document] += 1
        queue.push(page.claim, index)
        serve(page.arrival)
    end_until(math.inf)
    return [stays[index] for index in range(len(pages))]
