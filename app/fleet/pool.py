"""A pool: the lanes that serve one profile."""

import math
import random
from collections.abc import Collection, Sequence

from app.fleet.choice import least_loaded, relative_slowness
from app.fleet.lane import Lane

SPEEDS_SECONDS = 0.1
"""Age to which a comparison of the lanes' speeds is used: they change with each page, and each time only a little."""


class Pool:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self._slowness: Sequence[float] = ()
        self._compared_at = -math.inf

    def choose(self, now: float, avoid: Collection[str] = ()) -> Lane | None:
        """The lane for the next attempt; None if none has room. `avoid` holds ids of lanes not to use.

        Where this gateway has no share of these lanes it may have one attempt in flight there all the same: what it
        has claimed must end, and a page that one lane has failed must get to another.
        """
        if now >= self._compared_at + SPEEDS_SECONDS:
            self._slowness = relative_slowness([lane.pace_seconds for lane in self.lanes])
            self._compared_at = now
        lanes, slowness = self.lanes, self._slowness
        if avoid:
            wanted = [lane.id not in avoid for lane in lanes]
            lanes = [lane for lane, want in zip(lanes, wanted, strict=True) if want]
            slowness = [slow for slow, want in zip(slowness, wanted, strict=True) if want]
        return least_loaded(lanes, slowness, now) or _without_a_share(lanes)


def _without_a_share(lanes: Sequence[Lane]) -> Lane | None:
    if any(lane.inflight or lane.allowed for lane in lanes):
        return None
    free = [lane for lane in lanes if lane.takes_one]
    return min(free, key=lambda lane: (lane.load, random.random()), default=None)
