"""Load that other clients put on a replica, estimated from its metrics."""

from collections import deque

SCRAPES = 3
"""The estimate is the minimum over these: a gauge that lags behind our own attempts must not look like a client."""


class ForeignLoad:
    """An estimate that follows the scrapes."""

    def __init__(self) -> None:
        self.requests = 0.0
        """Requests running and waiting at the replica that are not ours; 0 while nothing is known."""
        self._own_peak = 0
        self._samples: deque[float] = deque(maxlen=SCRAPES)

    def sent(self, inflight: int) -> None:
        """We have `inflight` attempts there now."""
        self._own_peak = max(self._own_peak, inflight)

    def scraped(self, requests: float | None, inflight: int) -> None:
        """The replica showed `requests` in all; None: it shows none, or it is ours alone."""
        if requests is None:
            self._samples.clear()
        else:
            self._samples.append(requests - self._own_peak)
        self._own_peak = inflight
        self.requests = max(0.0, min(self._samples, default=0.0))
