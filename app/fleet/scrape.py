"""What a replica's `/metrics` says about its load, in the names of vLLM and of our CPU replica."""

from collections import defaultdict
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

_SLOTS = "pagefleet_replica_slots"
_RUNNING = "vllm:num_requests_running"
_WAITING = "vllm:num_requests_waiting"
_STEPS = ("pagefleet_replica_steps_total", "vllm:iteration_tokens_total_count")
_NAMES = (_SLOTS, _RUNNING, _WAITING, *_STEPS)


@dataclass(frozen=True, slots=True)
class Scrape:
    """One reading of `/metrics`, added up over the engines behind it; None: not stated."""

    slots: int | None = None
    """Requests that the replica can work on at once."""
    requests: float | None = None
    """Requests running and waiting, whoever sent them."""
    steps: float | None = None
    """A counter that moves while the engine works."""


def parse_scrape(text: str) -> Scrape:
    """Read Prometheus text. Raises `ValueError` if what looks like one of our lines can't be parsed."""
    # the parser takes about 20 µs a line and vLLM shows a thousand: it gets only the lines that matter
    lines = "\n".join(line for line in text.splitlines() if line.startswith(_NAMES))
    sums: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(lines + "\n"):
        for sample in family.samples:
            sums[sample.name] += sample.value
    slots = sums.get(_SLOTS)
    requests = [sums[name] for name in (_RUNNING, _WAITING) if name in sums]
    steps = [sums[name] for name in _STEPS if name in sums]
    return Scrape(
        slots=int(slots) if slots is not None and slots >= 1 else None,
        requests=sum(requests) if requests else None,
        steps=sum(steps) if steps else None,
    )
