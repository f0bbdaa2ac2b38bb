"""CPU time of a running process and its children."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """`pid` and its children, grandchildren and so on (Linux)."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, stack = [], [pid]
    while stack:
        found.append(stack.pop())
        stack += parents.get(found[-1], [])
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time so far of `pid` and the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS_PER_SECOND


def family_cpu_seconds(pid: int) -> float:
    return sum(cpu_seconds(member) for member in family(pid))
