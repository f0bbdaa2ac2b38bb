"""How long a server that is away or busy is waited for."""

import time
from collections.abc import Callable

from app.ocr.errors import Refused, ServerLost, Unanswered

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 5.0
LONGEST_ASKED_SECONDS = 60.0
"""Cap of the server's own Retry-After."""
AWAY_SECONDS = 60.0
"""Silence of the server that ends the command."""
PUT_OFF_SECONDS = 600.0
"""How long one request may be put off by a server that is heard of; then its file is given up."""


class Contact:
    """Whether the server is heard of: shared by all requests, so that an outage is told once and ends them together."""

    def __init__(
        self, tell: Callable[[str], None], is_gone: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`is_gone`: whether the server is known never to come back."""
        self._tell = tell
        self._is_gone = is_gone
        self._lost_at: float | None = None
        self.clock = clock

    def heard(self) -> None:
        self._lost_at = None

    def missed(self, reason: str) -> None:
        """A request got no answer. Raises `ServerLost` when that goes on for too long."""
        if self._is_gone():
            raise ServerLost("the gateway that this command started has ended; its own message stands above")
        if self._lost_at is None:
            self._lost_at = self.clock()
            self._tell(f"the server does not answer ({reason}); trying again for {AWAY_SECONDS:.0f} s")
        elif self.clock() - self._lost_at >= AWAY_SECONDS:
            raise ServerLost(f"the server has not answered for {AWAY_SECONDS:.0f} s ({reason})")


class Patience:
    """The waits between the tries of one request."""

    def __init__(self, contact: Contact) -> None:
        self._contact = contact
        self._next = FIRST_SECONDS
        self._put_off_at: float | None = None

    def answered(self) -> None:
        """The server took the request; what it streams is still to come."""
        self._contact.heard()
        self._put_off_at = None

    def progressed(self) -> None:
        """Something came that was not there before: the next wait is short again."""
        self._next = FIRST_SECONDS

    def seconds_after(self, error: Refused | Unanswered) -> float:
        """Seconds until the next try; raises `ServerLost`, or `Refused` where trying again is no use (any more)."""
        if isinstance(error, Unanswered):
            self._contact.missed(error.detail)
            error = Refused("unanswered", error.detail, passing=True)
        else:
            self._contact.heard()
        if self._put_off_at is None:
            self._put_off_at = self._contact.clock()
        if not error.passing or self._contact.clock() - self._put_off_at >= PUT_OFF_SECONDS:
            raise error
        wait, self._next = self._next, min(2 * self._next, LONGEST_SECONDS)
        return max(wait, min(error.retry_after_seconds, LONGEST_ASKED_SECONDS))
