"""One render process, as the gateway sees it."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

from app import lifeline
from app.rendering.frames import Frame, Header, receive_frame

MAX_JOBS = 500
MAX_RESIDENT_BYTES = 600 * 1024 * 1024
STREAM_BUFFER_BYTES = 1024 * 1024

_INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHOME", lifeline.PARENT_ENV)


class Worker:
    """A process that does one job at a time.

    Whoever abandons a job before its answer must kill the worker: the answer would be taken for the next job's.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._jobs_stream = process.stdin
        self._answers = process.stdout
        self._jobs = 0

    @classmethod
    async def spawn(cls, memory_bytes: int) -> Self:
        """Start a process whose first frame will say that it is ready; raises `OSError`."""
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-Wignore",  # Pillow warns of what it then copes with
                "-m",
                "app.rendering.child",
                str(memory_bytes),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=STREAM_BUFFER_BYTES,
                env=_environment(),
                start_new_session=True,  # a Ctrl-C in the terminal is the gateway's business
            )
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    async def receive(self, max_payload_bytes: int = 0) -> Frame:
        """The next frame; raises `FrameError`, and `EOFError` or `ConnectionError` when the process has ended."""
        return await receive_frame(self._answers, max_payload_bytes)

    async def do(self, job: Header, max_payload_bytes: int) -> Frame:
        """The answer to `job`; raises as `receive` does."""
        self._jobs += 1
        self._jobs_stream.writelines(Frame(job).parts())
        await self._jobs_stream.drain()
        return await self.receive(max_payload_bytes)

    def alive(self) -> bool:
        return self._process.returncode is None

    def worn_out(self) -> bool:
        """Whether a fresh process should take its place: libraries leak, and keep what a large page needed."""
        return self._jobs >= MAX_JOBS or _resident_bytes(self.pid) > MAX_RESIDENT_BYTES

    def kill(self) -> None:
        # Not `Process.kill`: it polls first, and would take the exit status of a dead process from asyncio's watcher.
        if self.alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def reap(self) -> int:
        """Wait for the end of a killed process and close its pipes; its exit status, negative for a signal."""
        self._jobs_stream.close()
        await self._answers.read()
        return await self._process.wait()


def ran_out_of_cpu(status: int) -> bool:
    return status == -signal.SIGXCPU


def _environment() -> dict[str, str]:
    """No secrets of the gateway's for a process that parses hostile files.

    Its modules come from where the gateway's come from, never from the working directory (`-P`): a folder named `app`
    there would shadow ours.
    """
    inherited = {name: value for name, value in lifeline.child_environment().items() if name in _INHERITED}
    return {**inherited, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}


def _resident_bytes(pid: int) -> int:
    """0 where there is no /proc: there, workers are replaced by their count of jobs only."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
