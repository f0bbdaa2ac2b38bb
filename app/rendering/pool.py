"""Places for render processes: fair waiting, a fresh process for one that dies, an end without leftovers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from math import ceil
from typing import TypeVar

from app.errors import Busy, Draining
from app.rendering.frames import Frame, Header
from app.rendering.worker import Worker, ran_out_of_cpu
from app.telemetry.logs import get_logger
from app.telemetry.metrics import RENDER_WORKER_DEATHS

T = TypeVar("T")

START_SECONDS = 30.0
"""A start takes about 0.3 s on an idle machine."""
START_TRIES = 2
"""One start may fall victim to a moment without memory, or to whoever kills processes then."""

_logger = get_logger("rendering")


class Death(StrEnum):
    """Why a worker was lost."""

    TIMEOUT = "timeout"
    CPU_LIMIT = "cpu_limit"
    CRASH = "crash"
    BAD_ANSWER = "bad_answer"
    CANCELLED = "cancelled"


class WorkerLost(Exception):
    """The worker died on the job, or was killed for it."""

    def __init__(self, death: Death) -> None:
        super().__init__(death)
        self.death = death

    @property
    def out_of_time(self) -> bool:
        return self.death in (Death.TIMEOUT, Death.CPU_LIMIT)


class Slot:
    """A place for one worker, which is started when it is first needed and replaced when it is lost."""

    def __init__(self, memory_bytes: int, max_payload_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._max_payload_bytes = max_payload_bytes
        self._worker: Worker | None = None
        self._reapings: set[asyncio.Task[int]] = set()
        self._closed = False

    @property
    def pid(self) -> int | None:
        return self._worker.pid if self._worker and self._worker.alive() else None

    async def call(self, job: Header, read: Callable[[Frame], T], seconds: float) -> T:
        """What `read` makes of the worker's answer to `job`; `seconds` of wall time, from when the worker has started.

        `read` raises `KeyError`, `TypeError` or `ValueError` for an answer that can't be. Raises `WorkerLost`,
        `Draining`, and `Busy` when no worker can be started.
        """
        worker = await self._started_worker()
        answer = await self._at_risk(self._ask(worker, job, read), seconds)
        if worker.worn_out():
            self._discard()
        return answer

    def kill(self) -> None:
        """End the worker and the job that it is doing; further jobs are refused."""
        self._closed = True
        if self._worker is not None:
            self._worker.kill()

    async def end(self) -> None:
        """After `kill`, when no call is in progress: wait until no process and no descriptor is left."""
        if self._worker is not None:
            self._discard()
        await asyncio.gather(*self._reapings)

    async def _started_worker(self) -> Worker:
        if self._worker is not None and not self._worker.alive():
            self._lose(Death.CRASH)  # while idle: no page's fault
        for _ in range(START_TRIES):
            if self._worker is None and not self._closed:
                with suppress(OSError, WorkerLost):
                    self._worker = await Worker.spawn(self._memory_bytes)
                    await self._at_risk(self._worker.receive(), START_SECONDS)
        if self._closed:
            raise Draining
        if self._worker is None:
            raise Busy("a render process could not be started")
        return self._worker

    async def _ask(self, worker: Worker, job: Header, read: Callable[[Frame], T]) -> T:
        return read(await worker.do(job, self._max_payload_bytes))

    async def _at_risk(self, exchange: Awaitable[T], seconds: float) -> T:
        """Lose the worker if the exchange with it does not end well; raises `WorkerLost`."""
        try:
            async with asyncio.timeout(seconds):
                return await exchange
        except TimeoutError:
            self._lose(Death.TIMEOUT)
            raise WorkerLost(Death.TIMEOUT) from None
        except (EOFError, ConnectionError) as error:
            status = await asyncio.shield(self._discard())
            if self._closed:
                raise Draining from error
            death = Death.CPU_LIMIT if ran_out_of_cpu(status) else Death.CRASH
            _count(death, status=status)
            raise WorkerLost(death) from error
        except (KeyError, TypeError, ValueError) as error:
            self._lose(Death.BAD_ANSWER)
            raise WorkerLost(Death.BAD_ANSWER) from error
        except asyncio.CancelledError:
            self._lose(Death.CANCELLED)
            raise

    def _lose(self, death: Death) -> None:
        self._discard()
        _count(death)

    def _discard(self) -> asyncio.Task[int]:
        """Kill the worker; its end is awaited by a task, so that a cancelled caller leaves nothing behind."""
        assert self._worker is not None
        worker, self._worker = self._worker, None
        worker.kill()
        reaping = asyncio.create_task(worker.reap())
        self._reapings.add(reaping)
        reaping.add_done_callback(self._reapings.discard)
        return reaping


class Pool:
    """`size` slots and one queue: who waits longest is next."""

    def __init__(self, size: int, memory_bytes: int, max_payload_bytes: int) -> None:
        self._slots = [Slot(memory_bytes, max_payload_bytes) for _ in range(size)]
        self._free = list(self._slots)
        self._permits = asyncio.Semaphore(size)

    def pids(self) -> list[int]:
        return [slot.pid for slot in self._slots if slot.pid is not None]

    @asynccontextmanager
    async def slot(self, wait_seconds: float | None = None) -> AsyncIterator[Slot]:
        """A slot of one's own; raises `Busy` when none gets free in `wait_seconds`."""
        try:
            async with asyncio.timeout(wait_seconds):
                await self._permits.acquire()
        except TimeoutError:
            raise Busy(retry_after=ceil(wait_seconds or 0)) from None
        slot = self._free.pop()
        try:
            yield slot
        finally:
            self._free.append(slot)
            self._permits.release()

    async def close(self) -> None:
        """Kill all workers and wait for their end; jobs in progress and later ones get `Draining`."""
        for slot in self._slots:
            slot.kill()
        for _ in self._slots:
            await self._permits.acquire()
        for slot in self._slots:
            await slot.end()
            self._permits.release()


def _count(death: Death, status: int | None = None) -> None:
    RENDER_WORKER_DEATHS.labels(reason=death).inc()
    _logger.warning("render worker lost", reason=death, status=status)
