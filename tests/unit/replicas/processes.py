"""Real processes for the tests; none outlives its test."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.lifeline import child_environment

DEADLINE_SECONDS = 30
CPU_SERVER = ("-m", "app.replicas.cpu")
READY = "pagefleet cpu replica listening on "


@contextmanager
def python(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process; killed at the end where it still runs."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def is_alive(pid: int) -> bool:
    """Zombies, which wait for an init that is not ours, count as dead."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
