"""Gateways on one store, over replicas; each a process of its own at a fixed address."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.programs import Program, free_port
from tests.crash.stores import Store

REPLICAS = 2
_ENVIRONMENT = {
    "PAGEFLEET_LONGEST_SIDE_PIXELS": "128",
    "PAGEFLEET_HEALTH_INTERVAL_SECONDS": "0.5",
    "PAGEFLEET_CLAIM_SECONDS": "3",
    "PAGEFLEET_RENDER_WORKERS": "2",
    "PAGEFLEET_SWEEP_INTERVAL_SECONDS": "1",
    "PAGEFLEET_ORPHAN_SECONDS": "10",
}


class Cluster:
    def __init__(self, folder: Path, store: Store, rng: random.Random) -> None:
        self._folder = folder
        replica_ports = [free_port(rng) for _ in range(REPLICAS)]
        gateway_ports = [free_port(rng) for _ in range(store.gateways)]
        self.urls = [f"http://127.0.0.1:{port}" for port in gateway_ports]
        """Of the gateways."""
        self.replicas = [self._replica(number, port) for number, port in enumerate(replica_ports, 1)]
        self.gateways = [
            self._gateway(number, port, replica_ports, store) for number, port in enumerate(gateway_ports, 1)
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start everything; at the end everything is killed."""
        programs = [*self.replicas, *self.gateways]
        try:
            for program in programs:
                program.start()
            yield
        finally:
            for program in programs:
                program.end()

    def check(self) -> None:
        """Raises `RuntimeError` where a program ended without being killed."""
        for program in (*self.replicas, *self.gateways):
            program.check()

    def calls(self) -> list[str]:
        """What the replicas were asked to read, each page as often as it was."""
        return [line for path in self._folder.glob("replica-*.calls") for line in path.read_text().splitlines()]

    def spooled(self) -> list[Path]:
        """Uploads that are being received."""
        return [path for path in self._folder.glob("gateway-*/spool/*") if path.is_file()]

    def _replica(self, number: int, port: int) -> Program:
        name = f"replica-{number}"
        arguments = ("-m", "tests.crash.replica", "--port", str(port), "--calls", str(self._folder / f"{name}.calls"))
        return Program(name, arguments, {}, self._folder / f"{name}.log")

    def _gateway(self, number: int, port: int, replica_ports: list[int], store: Store) -> Program:
        name = f"gateway-{number}"
        arguments = (
            *("-m", "app", "serve", "--end-with-parent", "--port", str(port)),
            *("--data-dir", str(self._folder / name)),
            *(part for replica in replica_ports for part in ("--endpoint", f"http://127.0.0.1:{replica}")),
        )
        return Program(name, arguments, {**_ENVIRONMENT, **store.environment}, self._folder / f"{name}.log")
