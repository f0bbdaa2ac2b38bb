"""Real processes for the tests; none outlives its test."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.lifeline import child_environment

DEADLINE_SECONDS = 30
CPU_SERVER = ("-m", "app.replicas.cpu")
READY = "pagefleet cpu replica listening on "


@contextmanager
def python(*arguments: str, life_seconds: float = DEADLINE_SECONDS) -> Iterator[subprocess.Popen[str]]:
    """A Python process; killed at the end, or after `life_seconds`, so that nobody waits for its output for ever."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_environment()) as process:
        deadline = threading.Timer(life_seconds, process.kill)
        deadline.start()
        try:
            yield process
        finally:
            deadline.cancel()
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def is_alive(pid: int) -> bool:
    """Zombies, which wait for an init that is not ours, count as dead."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
