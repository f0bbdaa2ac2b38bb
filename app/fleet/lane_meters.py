"""The Prometheus series of a lane."""

from typing import TYPE_CHECKING

from prometheus_client import Counter

from app.fleet.health import LaneState
from app.telemetry import metrics

if TYPE_CHECKING:
    from app.fleet.lane import Lane


class LaneMeters:
    """Gauges ask the lane when they are scraped, so that keeping them costs an attempt nothing."""

    def __init__(self, lane: "Lane") -> None:
        self._lane_id = lane.id
        self._gauges = {
            metrics.LANE_UP: lambda: lane.health.state.takes_pages,
            metrics.LANE_INFLIGHT: lambda: len(lane.inflight),
            metrics.LANE_WINDOW: lambda: lane.window,
            metrics.LANE_SHARE: lambda: lane.share,
            metrics.LANE_ENGINES: lambda: lane.engines,
            metrics.LANE_FOREIGN: lambda: lane.foreign.requests,
        }
        for gauge, value in self._gauges.items():
            gauge.labels(lane.id).set_function(value)
        self._ended: dict[str, Counter] = {}
        self._removed = False

    def attempt_ended(self, outcome: str) -> None:
        if self._removed:
            return
        counter = self._ended.get(outcome)
        if counter is None:
            counter = self._ended[outcome] = metrics.ATTEMPTS.labels(self._lane_id, outcome)
        counter.inc()

    def entered(self, state: LaneState) -> None:
        if not self._removed:
            metrics.LANE_TRANSITIONS.labels(self._lane_id, state.value).inc()

    def stalled(self) -> None:
        if not self._removed:
            metrics.LANE_STALLS.labels(self._lane_id).inc()

    def remove(self) -> None:
        """End the series; what attempts still in flight report is not shown any more."""
        self._removed = True
        for metric in (*self._gauges, metrics.ATTEMPTS, metrics.LANE_TRANSITIONS, metrics.LANE_STALLS):
            metric.remove_by_labels({"lane": self._lane_id})
