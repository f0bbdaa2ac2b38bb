"""What a server's `/metrics` says about its engines, in the names of vLLM and of our CPU replica."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

_SLOTS = "pagefleet_replica_slots"
_RUNNING = "vllm:num_requests_running"
_WAITING = "vllm:num_requests_waiting"
_KV_USAGE = "vllm:kv_cache_usage_perc"
_PREEMPTIONS = "vllm:num_preemptions_total"
_STEPS = ("pagefleet_replica_steps_total", "vllm:iteration_tokens_total_count")
_NAMES = (_SLOTS, _RUNNING, _WAITING, _KV_USAGE, _PREEMPTIONS, *_STEPS)
_ENGINE = "engine"
"""Label by which a vLLM server tells its data-parallel ranks apart."""


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """One reading of one engine, or of several added up; None: not stated."""

    slots: int | None = None
    """Requests that it can work on at once."""
    running: float | None = None
    waiting: float | None = None
    """Requests that it has accepted and not begun."""
    kv_usage: float | None = None
    """Share of the KV cache in use, 0 to 1; of several engines the highest."""
    preemptions: float | None = None
    """A counter: requests put back because the KV cache was full."""
    steps: float | None = None
    """A counter that moves while the engine works."""

    @property
    def requests(self) -> float | None:
        """Requests running and waiting, whoever sent them."""
        return _sum((self.running, self.waiting))


@dataclass(frozen=True, slots=True)
class Scrape:
    """One reading of a server."""

    engines: tuple[EngineLoad, ...] = ()
    """By rank. One for a server that does not tell its engines apart; none if it shows nothing."""

    @property
    def total(self) -> EngineLoad:
        """All engines added up."""
        slots = _sum(engine.slots for engine in self.engines)
        return EngineLoad(
            slots=None if slots is None else int(slots),
            running=_sum(engine.running for engine in self.engines),
            waiting=_sum(engine.waiting for engine in self.engines),
            kv_usage=max((engine.kv_usage for engine in self.engines if engine.kv_usage is not None), default=None),
            preemptions=_sum(engine.preemptions for engine in self.engines),
            steps=_sum(engine.steps for engine in self.engines),
        )


def parse_scrape(text: str) -> Scrape:
    """Read Prometheus text. Raises `ValueError` if what looks like one of our lines can't be parsed."""
    # the parser takes about 20 µs a line and vLLM shows a thousand: it gets only the lines that matter
    lines = "\n".join(line for line in text.splitlines() if line.startswith(_NAMES))
    sums: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for family in text_string_to_metric_families(lines + "\n"):
        for sample in family.samples:
            sums[sample.labels.get(_ENGINE, "")][sample.name] += sample.value
    ranks = _in_rank_order(label for label in sums if label)
    if len(ranks) > 1:
        return Scrape(tuple(_load(sums[label]) for label in ranks))
    merged = Scrape(tuple(_load(values) for values in sums.values())).total
    return Scrape() if merged == EngineLoad() else Scrape((merged,))


def _in_rank_order(labels: Iterable[str]) -> Sequence[str]:
    """The labels by number; none if they aren't successive numbers, which is how ranks are counted.

    They need not begin at 0: where several servers form one deployment, labels count through and ranks do not.
    """
    labels = list(labels)
    if not all(label.isdecimal() for label in labels):
        return ()
    ordered = sorted(labels, key=int)
    successive = [int(label) - int(ordered[0]) for label in ordered] == list(range(len(ordered)))
    return ordered if successive else ()


def _load(values: Mapping[str, float]) -> EngineLoad:
    slots = values.get(_SLOTS)
    return EngineLoad(
        slots=int(slots) if slots is not None and slots >= 1 else None,
        running=values.get(_RUNNING),
        waiting=values.get(_WAITING),
        kv_usage=values.get(_KV_USAGE),
        preemptions=values.get(_PREEMPTIONS),
        steps=_sum(values.get(name) for name in _STEPS),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    """Of those that are stated; None if none is."""
    stated = [value for value in values if value is not None]
    return sum(stated) if stated else None
