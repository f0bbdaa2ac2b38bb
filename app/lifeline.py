"""Children that end with their parent, `kill -9` of the parent included.

Used by every process that pagefleet starts: render and inspection workers, CPU replicas.
"""

import ctypes
import os
import signal
import sys

PARENT_ENV = "PAGEFLEET_PARENT_PID"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def child_environment() -> dict[str, str]:
    """Environment for a child that will call `die_with_parent`."""
    return {**os.environ, PARENT_ENV: str(os.getpid())}


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends; at once if that has already happened.

    The kernel's promise holds even while C code spins with the GIL held. It is tied to the thread that started this
    process, so parents start children from their main thread. Without Linux, children end when their input closes.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    parent = os.environ.get(PARENT_ENV)
    if parent is not None and os.getppid() != int(parent):
        sys.exit(0)
