"""The time in which nothing can be had from the database."""

import time
from collections.abc import Callable

from app.errors import StoreUnavailable
from app.telemetry.logs import get_logger

TRIAL_SECONDS = 0.5
"""Time between two calls that try a database that is away."""

_log = get_logger("journal")


class Outage:
    """While the database is away a call tries it now and then, and those between fail at once.

    Otherwise they would all wait for connections that time out, and who could be told at once would wait with them.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._trial_at: float | None = None

    def check(self) -> None:
        """Raises `StoreUnavailable`."""
        if self._trial_at is not None and self._clock() < self._trial_at:
            raise StoreUnavailable("the database can't be reached")

    def begin(self, reason: str) -> None:
        if self._trial_at is None:
            _log.error("the database is away", reason=reason)
        self._trial_at = self._clock() + TRIAL_SECONDS

    def end(self) -> None:
        if self._trial_at is not None:
            self._trial_at = None
            _log.info("the database is back")
