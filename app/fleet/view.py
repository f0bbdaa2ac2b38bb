"""A lane as others see it."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from app.fleet.health import LaneState


def lane_id(endpoint: str, rank: int | None) -> str:
    """The same on every gateway: first 12 hex digits of sha256(base URL), `-`, rank."""
    return f"{hashlib.sha256(endpoint.encode()).hexdigest()[:12]}-{rank or 0}"


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane at one moment, for people and for placing work; changes nothing."""

    id: str
    endpoint: str
    """Base URL, without credentials."""
    rank: int | None
    """The engine that its requests name; None: they name none."""
    engines: int
    """Engines behind it: more than one where the server has ranks but does not heed the name of one."""
    model: str | None
    """None until the replica has said it."""
    state: LaneState
    reason: str
    """Why it is in this state, or does not leave it."""
    since: datetime
    """When it came into this state."""
    window: int
    """Attempts that it may have in flight when it is up."""
    share: int
    """Of them, those of this gateway."""
    inflight: int
    attempts: int
    """Attempts ended so far."""
    failures: int
    """Of them, those that brought no good answer; cancelled ones don't count."""
    charged: int
    """Recent failures that count as load in the choice."""
    foreign: float
    """Estimated requests of other clients."""
    seconds_per_page: float | None
    """Moving average; None: no page read yet."""
    own: bool
    """Started by this gateway."""
