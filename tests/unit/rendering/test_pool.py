import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from prometheus_client import REGISTRY

from app.errors import Busy, Draining
from app.rendering import worker
from app.rendering.frames import Frame
from app.rendering.pool import Death, Pool, WorkerLost
from tests.processes import is_alive

MEMORY_BYTES = 2**31
DEADLINE_SECONDS = 30
# Answered at once: there is no such file.
JOB = {"job": "inspect", "renderer": "mupdf", "path": "/nowhere", "password": None, "cpu_seconds": 5}


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    pool = Pool(1, MEMORY_BYTES, max_payload_bytes=0)
    yield pool
    await pool.close()


def _read(frame: Frame) -> Any:
    return frame.header["fault"]


async def _call(pool: Pool, seconds: float = DEADLINE_SECONDS) -> Any:
    async with pool.slot() as slot:
        return await slot.call(JOB, _read, seconds)


def _deaths(reason: Death) -> float:
    return REGISTRY.get_sample_value("pagefleet_render_worker_deaths_total", {"reason": reason}) or 0


async def _stopped_worker(pool: Pool) -> int:
    """The pid of a worker that is frozen: it will not answer."""
    await _call(pool)
    (pid,) = pool.pids()
    os.kill(pid, signal.SIGSTOP)
    return pid


async def test_a_worker_starts_when_needed_and_stays(pool: Pool) -> None:
    assert pool.pids() == []
    assert await _call(pool) == "store_unavailable"
    pids = pool.pids()
    assert await _call(pool) == "store_unavailable"
    assert pool.pids() == pids


async def test_a_worker_that_does_not_answer_in_time_is_killed_and_replaced(pool: Pool) -> None:
    pid, deaths = await _stopped_worker(pool), _deaths(Death.TIMEOUT)
    with pytest.raises(WorkerLost) as lost:
        await _call(pool, seconds=0.05)
    assert lost.value.out_of_time and _deaths(Death.TIMEOUT) == deaths + 1
    assert await _call(pool) == "store_unavailable"
    assert pool.pids() != [pid]


@pytest.mark.parametrize(("number", "death"), [(signal.SIGKILL, Death.CRASH), (signal.SIGXCPU, Death.CPU_LIMIT)])
async def test_a_signal_ends_the_job_and_tells_why(pool: Pool, number: signal.Signals, death: Death) -> None:
    pid = await _stopped_worker(pool)
    call = asyncio.create_task(_call(pool))
    await asyncio.sleep(0.02)
    os.kill(pid, number)
    with suppress(ProcessLookupError):  # what kills also a stopped process may have done so
        os.kill(pid, signal.SIGCONT)
    with pytest.raises(WorkerLost) as lost:
        await call
    assert lost.value.death is death


async def test_a_worker_that_died_while_idle_costs_no_job(pool: Pool) -> None:
    await _call(pool)
    (pid,) = pool.pids()
    os.kill(pid, signal.SIGKILL)
    for _ in range(DEADLINE_SECONDS * 100):
        if pool.pids():
            await asyncio.sleep(0.01)
    assert await _call(pool) == "store_unavailable"


async def test_a_worker_with_an_answer_that_can_not_be_is_replaced(pool: Pool) -> None:
    async with pool.slot() as slot:
        with pytest.raises(WorkerLost) as lost:
            await slot.call(JOB, lambda frame: frame.header["pages"], DEADLINE_SECONDS)
    assert lost.value.death is Death.BAD_ANSWER and pool.pids() == []


async def test_an_abandoned_job_takes_its_worker_along(pool: Pool) -> None:
    pid = await _stopped_worker(pool)
    call = asyncio.create_task(_call(pool))
    await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert pool.pids() == []
    await pool.close()
    assert not is_alive(pid)


async def test_a_worker_is_replaced_when_it_did_many_jobs_or_holds_much_memory(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "MAX_JOBS", 2)
    await _call(pool)
    assert len(pool.pids()) == 1
    await _call(pool)
    assert pool.pids() == []
    monkeypatch.setattr(worker, "MAX_RESIDENT_BYTES", 1024)
    await _call(pool)
    assert pool.pids() == []


async def test_waiting_is_fair_and_bounded(pool: Pool) -> None:
    order: list[int] = []

    async def wait(number: int) -> None:
        async with pool.slot():
            order.append(number)

    async with pool.slot():
        waiting = [asyncio.create_task(wait(number)) for number in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            async with pool.slot(wait_seconds=0.01):
                raise AssertionError("two in one slot")
    await wait(5)
    await asyncio.gather(*waiting)
    assert order == [0, 1, 2, 3, 4, 5]


async def test_no_worker_starts_is_no_fault_of_the_file(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(Busy):
        await _call(pool)


async def test_a_worker_that_ends_at_once_is_no_fault_of_the_file(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(Busy):
        await _call(pool)


async def test_close_ends_jobs_in_progress_and_refuses_later_ones(pool: Pool) -> None:
    pid = await _stopped_worker(pool)
    calls = [asyncio.create_task(_call(pool)) for _ in range(3)]
    await asyncio.sleep(0.02)
    await pool.close()
    assert not is_alive(pid) and pool.pids() == []
    assert [type(error) for error in await asyncio.gather(*calls, return_exceptions=True)] == [Draining] * 3
    with pytest.raises(Draining):
        await _call(pool)
