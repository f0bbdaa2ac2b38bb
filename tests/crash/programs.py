"""Programs that are killed and started again, at the same address."""

import random
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.lifeline import PARENT_ENV, child_environment

_PORTS = range(20_000, 32_000)
"""Below those that the kernel hands out: a port would not stay free while its owner is down, and a client that connects
to a free one of those may be connected to itself."""


class Program:
    """A Python program; its output goes to a file."""

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.killed: list[int] = []
        """Process ids that it had."""
        self._command = (sys.executable, *arguments)
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """None between a kill and the next start."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**child_environment(), **self._environment},
            )

    def kill(self) -> None:
        """`kill -9` of a program that runs. Raises `RuntimeError` where it had ended by itself."""
        assert self._process is not None
        self.check()
        self.killed.append(self._process.pid)
        self.end()

    def end(self) -> None:
        """Kill it if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def check(self) -> None:
        """Raises `RuntimeError` where it ended without being killed."""
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended by itself with status {self._process.returncode}, see {self._log}")

    def orphans(self) -> list[int]:
        """Processes that its former selves started, and that still live."""
        marks = {f"{PARENT_ENV}={pid}".encode() for pid in self.killed}
        pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [pid for pid in pids if marks & _environment_of(pid)]


def free_port(rng: random.Random) -> int:
    """A TCP port that nothing listens on, and that the kernel gives to nobody else."""
    while True:
        port = rng.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _environment_of(pid: int) -> set[bytes]:
    """As it was started; empty for one that is gone, and for a zombie."""
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return set()
