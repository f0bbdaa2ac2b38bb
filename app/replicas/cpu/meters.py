"""What a router reads on /metrics: load by vLLM's names, the slots, and whether the engine still moves."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from app.documents.models import CPU_MODEL

SLOTS = 1


class Meters:
    """Metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.running = self._load("vllm:num_requests_running", "Pages being read")
        self.waiting = self._load("vllm:num_requests_waiting", "Pages that wait for the slot")
        self.steps = Counter(
            "pagefleet_replica_steps_total",
            "Stages of pages done: decode, read, layout, answer",
            registry=self._registry,
        )
        slots = Gauge("pagefleet_replica_slots", "Pages that this replica reads at a time", registry=self._registry)
        slots.set(SLOTS)

    def expose(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def _load(self, name: str, documentation: str) -> Gauge:
        return Gauge(name, documentation, ["engine", "model_name"], registry=self._registry).labels("0", CPU_MODEL)
