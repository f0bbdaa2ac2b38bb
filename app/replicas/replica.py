"""One replica: its process, and the next one when that dies."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from app.lifeline import child_environment
from app.replicas.backoff import Backoff
from app.replicas.child import Child
from app.replicas.command import ReplicaCommand
from app.telemetry import metrics
from app.telemetry.logs import get_logger

logger = get_logger("replicas")


class ReplicaState(StrEnum):
    STARTING = "starting"
    UP = "up"
    DOWN = "down"
    """Dead, to be started again after a wait."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ReplicaProcess:
    """What is known about one replica now."""

    name: str
    state: ReplicaState
    url: str | None
    """None until it was up for the first time; the same for all its lives."""
    pid: int | None
    """None while there is no process."""
    restarts: int


class Replica:
    """Runs one replica for as long as `keep` runs: a child process at a time, on the same port in each life."""

    def __init__(self, command: ReplicaCommand, on_up: Callable[[str], None], on_down: Callable[[str], None]) -> None:
        self.started = asyncio.Event()
        """Set when the first process was started, or could not be."""
        self._command = command
        self._on_up = on_up
        self._on_down = on_down
        self._log = logger.bind(replica=command.name)
        self._state = ReplicaState.STARTING
        self._url: str | None = None
        self._pid: int | None = None
        self._restarts = 0

    def view(self) -> ReplicaProcess:
        return ReplicaProcess(self._command.name, self._state, self._url, self._pid, self._restarts)

    async def keep(self) -> None:
        """Start the replica and restart it until cancelled; then no process of it is left."""
        backoff = Backoff()
        try:
            while True:
                born = time.monotonic()
                was_up = await self._live()
                await asyncio.sleep(backoff.after(time.monotonic() - born, was_up))
                self._restarts += 1
                metrics.REPLICA_RESTARTS.inc()
        finally:
            self._state = ReplicaState.STOPPED

    async def _live(self) -> bool:
        """One life, from start to death; whether it was up."""
        self._state = ReplicaState.STARTING
        argv = self._argv()
        try:
            child = await Child.start(argv, {**child_environment(), **self._command.environment}, self._hear)
        except OSError as error:
            self._log.error("replica could not be started", error=str(error))
            return self._down()
        finally:
            self.started.set()
        self._pid = child.pid
        try:
            status = await child.wait()
        except asyncio.CancelledError:
            await child.end()
            self._down()
            raise
        was_up = self._down()
        message = "replica died" if was_up else "replica ended before it was ready"
        self._log.error(message, status=status, command=" ".join(argv))
        return was_up

    def _argv(self) -> list[str]:
        """With the port of the last life, so that the URL, which names the replica, stays."""
        port = urlsplit(self._url).port if self._url is not None else None
        return list(self._command.argv(self._command.port if port is None else port))

    def _hear(self, line: str) -> None:
        match = self._command.ready.search(line)
        if match is None or self._state is not ReplicaState.STARTING:
            self._log.info("replica output", line=line)
            return
        self._state = ReplicaState.UP
        self._url = match["url"]
        self._log.info("replica up", url=self._url, pid=self._pid, restarts=self._restarts)
        self._on_up(self._url)

    def _down(self) -> bool:
        """Whether it was up."""
        was_up = self._state is ReplicaState.UP
        self._state = ReplicaState.DOWN
        self._pid = None
        if was_up and self._url is not None:
            self._on_down(self._url)
        return was_up
