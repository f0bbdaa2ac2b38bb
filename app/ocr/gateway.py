"""The gateway that files are read through: one that runs somewhere, or one started for the occasion."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app import lifeline
from app.errors import StartError

STOP_SECONDS = 60
READY_LINE = "pagefleet listening on "


@dataclass(frozen=True, slots=True)
class Gateway:
    url: str
    process: asyncio.subprocess.Process | None = None
    """None: it was there before and stays."""

    @property
    def own(self) -> bool:
        return self.process is not None

    def is_gone(self) -> bool:
        return self.process is not None and self.process.returncode is not None


@asynccontextmanager
async def gateway(server: str | None) -> AsyncIterator[Gateway]:
    """The gateway at the base URL `server`; None starts one and stops it at the end.

    Raises `StartError`.
    """
    if server is not None:
        yield Gateway(server)
        return
    with tempfile.TemporaryDirectory(prefix="pagefleet-") as data_dir:
        process = await _start(data_dir)
        try:
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode()
            if not line.startswith(READY_LINE):
                raise StartError("the gateway did not start; its own message stands above")
            yield Gateway(line.removeprefix(READY_LINE).strip(), process)
        finally:
            await _stop(process)


async def _start(data_dir: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", "serve", "--end-with-parent"),
        *("--host", "127.0.0.1", "--port", "0", "--data-dir", data_dir),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the command alone, which then stops the gateway
        env={
            "PAGEFLEET_LOG_LEVEL": "error",  # what befalls a file is told by the command
            **lifeline.child_environment(),
            "PAGEFLEET_GRACE_SECONDS": "0",  # nobody will read what is left in a journal that is thrown away
            # It serves this command alone, on loopback, whatever the environment sets up for others.
            "PAGEFLEET_API_KEYS_FILE": "",
            "PAGEFLEET_DATABASE_URL": "",
            "PAGEFLEET_BLOB_URL": "",
        },
    )


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
