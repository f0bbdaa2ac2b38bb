"""A server process with a folder."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from app.lifeline import die_with_parent

START_SECONDS = 60
STOP_SECONDS = 30
UNPRIVILEGED_ACCOUNT = "nobody"


class Server(ABC):
    """A context manager: started at its beginning, killed at its end and its folder erased.

    Start it in the main thread, with whose end the kernel kills the server.
    """

    process: subprocess.Popen[bytes]

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"pagefleet-{type(self).__name__.lower()}-"))

    @abstractmethod
    def start(self) -> None:
        """Return when the server serves; after an end on the same port as before, with the same data."""

    @abstractmethod
    def is_ready(self) -> bool: ...

    def kill(self) -> None:
        """`kill -9`; return when it is gone."""
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "process"):
            self.kill()
        shutil.rmtree(self.folder)

    def _launch(self, command: Sequence[str | Path], **options: Any) -> None:
        """Start the process and wait until it is ready; raises RuntimeError, with its log, where it doesn't get so."""
        assert threading.current_thread() is threading.main_thread()
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                preexec_fn=die_with_parent,
                **options,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start: {self.log()[-4000:]}")
            time.sleep(0.02)


def free_ports(count: int) -> list[int]:
    """Different TCP ports of the loopback address that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def unprivileged() -> dict[str, Any]:
    """Options of `subprocess` for what refuses to run as root; none for an ordinary user."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam(UNPRIVILEGED_ACCOUNT)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def hand_over(folder: Path) -> None:
    """Give a folder and all that is in it to the user that `unprivileged` processes run as."""
    owner = unprivileged()
    if owner:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, owner["user"], owner["group"], follow_symlinks=False)
