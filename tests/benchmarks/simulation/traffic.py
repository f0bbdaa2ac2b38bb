"""Pages as they come, and the replicas that they come to."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app.documents.records import Claim

MEAN_SECONDS = 5.0
VARIATION = 0.7
"""Standard deviation of a page's service time, as a share of its mean."""
SHORTEST_SECONDS, LONGEST_SECONDS = 0.5, 60.0
RUNAWAY_SHARE = 0.02
"""Pages that run into the token limit, which takes the longest time."""
WARM_UP_SHARE = 0.1
"""First part of the pages, whose waits don't count: it begins with an empty fleet."""

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Page:
    arrival: float
    """Seconds from the beginning."""
    seconds: float
    """Service time on a replica of speed 1."""
    document: str
    number: int

    @property
    def key(self) -> bytes:
        return f"{self.document}/{self.number}".encode()

    @property
    def claim(self) -> Claim:
        return claim_of(self.document, self.number)


@dataclass(frozen=True, slots=True)
class Stay:
    """What a page met, in seconds."""

    wait: float
    """From its arrival until it had a slot."""
    total: float
    """From its arrival to its end."""


@dataclass(frozen=True, slots=True)
class Replica:
    slots: int
    slowness: float = 1.0
    """Factor on service times."""
    broken: bool = False
    """It answers each request with an error, at once."""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    replicas: Sequence[Replica]
    load: float
    """Share of the slots' time that the pages need."""
    pages: int
    seed: int
    document_pages: int = 1
    """Pages that arrive together."""

    def traffic(self) -> list[Page]:
        """Documents as a Poisson process."""
        generator = random.Random(self.seed)
        speed = sum(replica.slots / replica.slowness for replica in self.replicas if not replica.broken)
        gap = _mean_seconds() * self.document_pages / (speed * self.load)
        pages, now = [], 0.0
        for document in range(self.pages // self.document_pages):
            now += generator.expovariate(1 / gap)
            pages += [
                Page(now, service_seconds(generator), f"{document:06}", number)
                for number in range(1, self.document_pages + 1)
            ]
        return pages


def claim_of(document: str, page: int) -> Claim:
    return Claim(
        document_id=document,
        tenant="default",
        page=page,
        number=1,
        profile="generic",
        priority=3,
        blob_key="",
        password=None,
        attempts=0,
        lane_deaths=0,
        queued_at=_ANY_TIME,
    )


def batch(pages: int, seed: int) -> list[Page]:
    """One document, there from the beginning."""
    generator = random.Random(seed)
    return [Page(0.0, service_seconds(generator), "batch", number) for number in range(1, pages + 1)]


def service_seconds(generator: random.Random) -> float:
    """Lognormal and clipped; a few run away."""
    if generator.random() < RUNAWAY_SHARE:
        return LONGEST_SECONDS
    variance = math.log(1 + VARIATION**2)
    seconds = generator.lognormvariate(math.log(MEAN_SECONDS) - variance / 2, math.sqrt(variance))
    return min(LONGEST_SECONDS, max(SHORTEST_SECONDS, seconds))


def _mean_seconds() -> float:
    return (1 - RUNAWAY_SHARE) * MEAN_SECONDS + RUNAWAY_SHARE * LONGEST_SECONDS
