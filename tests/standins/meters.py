"""`/metrics` of a stand-in, with vLLM's names and labels."""

from collections.abc import Callable, Sequence

from tests.standins.engine import Engine

_GAUGES: dict[str, Callable[[Engine], float]] = {
    "vllm:num_requests_running": lambda engine: engine.running + engine.foreign,
    "vllm:num_requests_waiting": lambda engine: engine.waiting,
    "vllm:kv_cache_usage_perc": lambda engine: engine.kv_usage,
}


def metrics_text(engines: Sequence[Engine], model: str, *, states_slots: bool) -> str:
    labels = [f'engine="{rank}",model_name="{model}"' for rank in range(len(engines))]
    labelled = list(zip(labels, engines, strict=True))
    lines = []
    for name, value in _GAUGES.items():
        lines.append(f"# TYPE {name} gauge")
        lines += [f"{name}{{{label}}} {float(value(engine))}" for label, engine in labelled]
    lines.append("# TYPE vllm:num_preemptions_total counter")
    lines += [f"vllm:num_preemptions_total{{{label}}} {float(engine.preemptions)}" for label, engine in labelled]
    lines.append("# TYPE vllm:iteration_tokens_total histogram")
    for rank, (label, engine) in enumerate(labelled):
        steps = float(engine.read_steps())
        lines += [
            f'vllm:iteration_tokens_total_bucket{{engine="{rank}",le="+Inf",model_name="{model}"}} {steps}',
            f"vllm:iteration_tokens_total_count{{{label}}} {steps}",
            f"vllm:iteration_tokens_total_sum{{{label}}} {steps}",
        ]
    if states_slots:
        lines += ["# TYPE pagefleet_replica_slots gauge", *_slots(labelled)]
    return "\n".join(lines) + "\n"


def _slots(labelled: Sequence[tuple[str, Engine]]) -> list[str]:
    """With one engine without labels, as our own OCR server says it."""
    if len(labelled) == 1:
        return [f"pagefleet_replica_slots {labelled[0][1].slots}"]
    return [f"pagefleet_replica_slots{{{label}}} {engine.slots}" for label, engine in labelled]
