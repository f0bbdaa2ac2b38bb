"""All replicas of a fleet: started together, watched one by one, stopped together."""

import asyncio
from collections.abc import Callable, Sequence

from app.replicas.command import ReplicaCommand
from app.replicas.replica import Replica, ReplicaProcess
from app.telemetry.logs import get_logger

logger = get_logger("replicas")


class Supervisor:
    """Keeps one process a command running. Start it from the main thread's event loop: see `app.lifeline`."""

    def __init__(
        self, replicas: Sequence[ReplicaCommand], *, on_up: Callable[[str], None], on_down: Callable[[str], None]
    ) -> None:
        """`on_up(url)`: a replica accepts requests; `on_down(url)`: one that was up has ended, by `stop` included."""
        self._replicas = [Replica(command, on_up, on_down) for command in replicas]
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all replicas; returns when each has a process or a failed start, before they are up."""
        for replica in self._replicas:
            task = asyncio.create_task(replica.keep())
            task.add_done_callback(_report)
            self._tasks.append(task)
        for replica in self._replicas:
            await replica.started.wait()

    async def stop(self) -> None:
        """End all replicas, by SIGTERM, then SIGKILL; no process is left."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def processes(self) -> list[ReplicaProcess]:
        """The replicas as they are now, in the order of their commands."""
        return [replica.view() for replica in self._replicas]


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a replica is no longer watched", exc_info=error)
