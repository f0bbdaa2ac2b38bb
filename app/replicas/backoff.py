"""How long a replica that died stays down."""

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 10.0
SETTLED_SECONDS = 30.0
"""A life of this length forgives the deaths before it."""


class Backoff:
    """Doubling waits between the lives of one replica."""

    def __init__(self) -> None:
        self._next = FIRST_SECONDS
        self._forgiving = True

    def after(self, life_seconds: float, was_up: bool) -> float:
        """Seconds to wait after a life; 0 the first time that a replica which worked dies."""
        if life_seconds >= SETTLED_SECONDS:
            self._next = FIRST_SECONDS
            self._forgiving = True
        if was_up and self._forgiving:
            self._forgiving = False
            return 0.0
        wait, self._next = self._next, min(2 * self._next, LONGEST_SECONDS)
        return wait
