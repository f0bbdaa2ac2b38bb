"""Real processes for the tests; none outlives its test."""

import os
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
    return _stat(pid)[:1] not in ([], ["Z"])


def open_descriptors() -> int:
    """How many this process has."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def children(pid: int) -> list[int]:
    """Processes whose parent is `pid`."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [child for child in pids if _stat(child)[1:2] == [str(pid)]]


def cpu_seconds(pid: int) -> float:
    """User and system time so far of `pid` and of the children that it has waited for."""
    return sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; none for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
