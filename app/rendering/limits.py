"""What a render process may use; the kernel holds it to that, in C code too."""

import resource
import sys
from math import ceil

CPU_MARGIN_SECONDS = 1
"""Lets the gateway's own wall limit strike first on an idle machine."""


def limit_process(memory_bytes: int) -> None:
    """Bound the address space and write no core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def renew_cpu_limit(seconds: float) -> None:
    """Allow `seconds` of CPU time more than used so far; then SIGXCPU ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(used.ru_utime + used.ru_stime + seconds) + CPU_MARGIN_SECONDS, hard))
