"""The embedded OCR servers as replicas: how many, and how each is started."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from app.errors import StartError
from app.replicas.command import ReplicaCommand
from app.settings import MIB, cpu_count

REPLICA_MEMORY_BYTES = 512 * MIB
"""PP-OCRv6 tiny peaks at 300 to 340 MiB; the rest is for the server and the images in line. A page that needs the
small model takes up to 700 MiB for its ten seconds; seldom on many replicas at once."""

_READY = re.compile(r"^pagefleet cpu replica listening on (?P<url>\S+)$")
_CGROUP = Path("/sys/fs/cgroup")
_MAX_PORT = 65_535


def default_count() -> int:
    """One replica a CPU, as far as memory goes; at least one."""
    free_bytes = free_memory_bytes()
    if free_bytes is None:
        return cpu_count()
    return max(1, min(cpu_count(), free_bytes // REPLICA_MEMORY_BYTES))


def cpu_commands(count: int, *, host: str = "127.0.0.1", port: int = 0) -> list[ReplicaCommand]:
    """Commands of `count` servers; with `port` given, server i listens on `port` + i.

    Raises `StartError` where the engine is not installed or the ports end.
    """
    if find_spec("faster_paddle") is None:
        raise StartError("the CPU OCR engine is missing: pip install 'pagefleet[cpu]'")
    if port and port + count - 1 > _MAX_PORT:
        raise StartError(f"{count} replicas from port {port} on need ports above {_MAX_PORT}")
    return [
        ReplicaCommand(
            name=f"cpu-{index}",
            argv=_argv(host),
            ready=_READY,
            port=port + index if port else 0,
            environment={"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
        )
        for index in range(count)
    ]


def _argv(host: str) -> Callable[[int], Sequence[str]]:
    # -P and our own import path: `-m` alone would take an `app` package of the working directory for ours.
    return lambda port: [sys.executable, "-P", "-m", "app.replicas.cpu", "--host", host, "--port", str(port)]


def free_memory_bytes(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = _CGROUP) -> int | None:
    """Memory that new processes may take: of the machine and of this cgroup (v2); None where neither is known."""
    known = [free for free in (_machine_free_bytes(meminfo), _cgroup_free_bytes(cgroup)) if free is not None]
    return min(known, default=None)


def _machine_free_bytes(meminfo: Path) -> int | None:
    try:
        match = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) * 1024 if match else None


def _cgroup_free_bytes(cgroup: Path) -> int | None:
    """Pages of the file cache that were not used lately count as free: the kernel gives them up first."""
    try:
        limit = int((cgroup / "memory.max").read_text())
        used = int((cgroup / "memory.current").read_text())
        match = re.search(r"^inactive_file (\d+)$", (cgroup / "memory.stat").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None  # no cgroup v2, or "max": no limit
    return max(0, limit - used + (int(match[1]) if match else 0))
