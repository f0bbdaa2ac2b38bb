"""A child process: its lines, its death, its end."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from subprocess import DEVNULL, PIPE
from typing import Self, cast

STOP_SECONDS = 5.0
"""From SIGTERM to SIGKILL."""
_LAST_LINES_SECONDS = 1.0
_MAX_LINE_BYTES = 64 * 1024


class Child(asyncio.SubprocessProtocol):
    """A process in a session of its own, whose standard output is read line by line; standard error is the parent's.

    asyncio's `Process.wait()` returns only when the output is closed too, which a helper that outlives its parent
    prevents; `process_exited` comes with the death.
    """

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = b""
        self._dead = asyncio.Event()
        self._closed = asyncio.Event()

    @classmethod
    async def start(cls, argv: Sequence[str], environment: Mapping[str, str], on_line: Callable[[str], None]) -> Self:
        """Raises `OSError` where the program can't be started."""
        loop = asyncio.get_running_loop()
        _, child = await loop.subprocess_exec(
            lambda: cls(on_line),
            *argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=None,
            env=environment,
            start_new_session=True,
        )
        return child

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    async def wait(self) -> int:
        """Exit status, or minus the signal's number; then the whole session is gone and its last lines are read."""
        await self._dead.wait()
        self._kill_session()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), _LAST_LINES_SECONDS)
        self._transport.close()
        return cast(int, self._transport.get_returncode())

    async def end(self) -> None:
        """SIGTERM, and SIGKILL to what is left after `STOP_SECONDS`."""
        with contextlib.suppress(ProcessLookupError):
            self._transport.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._dead.wait(), STOP_SECONDS)
        self._kill_session()
        await self.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[:_MAX_LINE_BYTES]
        for line in lines:
            self._on_line(line.decode(errors="replace").rstrip())

    def process_exited(self) -> None:
        self._dead.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()

    def _kill_session(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses where only zombies are left
            os.killpg(self.pid, signal.SIGKILL)
