"""Supervision of real child processes."""

import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from app.replicas import backoff, child
from app.replicas.command import ReplicaCommand
from app.replicas.cpu_fleet import cpu_commands
from app.replicas.replica import ReplicaProcess, ReplicaState
from app.replicas.supervisor import Supervisor
from app.telemetry import metrics
from tests.processes import DEADLINE_SECONDS, is_alive, next_line, python

READY = re.compile(r"^ready at (?P<url>\S+)$")
SERVE = """
import signal, socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("noise " * 300_000)
print(f"ready at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
signal.pause()
"""
IGNORE_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
LEAVE_A_HELPER = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, file=open(sys.argv[2], 'w'))\n"


def command(code: str, *arguments: str) -> ReplicaCommand:
    return ReplicaCommand(
        "test", lambda port: [sys.executable, "-c", f"import sys\n{code}", str(port), *arguments], READY
    )


class Fleet:
    """A supervisor and what it said."""

    def __init__(self, *commands: ReplicaCommand) -> None:
        self.said: list[tuple[str, str]] = []
        self.supervisor = Supervisor(
            commands,
            on_up=lambda url: self.said.append(("up", url)),
            on_down=lambda url: self.said.append(("down", url)),
        )

    @property
    def first(self) -> ReplicaProcess:
        return self.supervisor.processes()[0]

    def all_up(self) -> bool:
        return all(process.state is ReplicaState.UP for process in self.supervisor.processes())


@asynccontextmanager
async def running(*commands: ReplicaCommand) -> AsyncIterator[Fleet]:
    fleet = Fleet(*commands)
    await fleet.supervisor.start()
    try:
        yield fleet
    finally:
        await fleet.supervisor.stop()


async def until(reached: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        while not reached():  # noqa: ASYNC110 - processes set no events
            await anyio.sleep(0.01)


def pid_of(process: ReplicaProcess) -> int:
    assert process.pid is not None
    return process.pid


async def test_start_returns_with_processes_and_up_follows() -> None:
    async with running(command(SERVE), command(SERVE)) as fleet:
        assert all(process.pid for process in fleet.supervisor.processes())
        await until(fleet.all_up)
        urls = [process.url for process in fleet.supervisor.processes()]
        assert sorted(fleet.said) == sorted(("up", url) for url in urls)
        assert len(set(urls)) == 2


async def test_a_killed_replica_is_back_at_once_on_the_same_url() -> None:
    restarts = metrics.REPLICA_RESTARTS._value.get()
    async with running(command(SERVE)) as fleet:
        await until(fleet.all_up)
        before = fleet.first
        os.kill(pid_of(before), signal.SIGKILL)
        await until(lambda: fleet.all_up() and fleet.first.restarts == 1)
        assert fleet.first.url == before.url
        assert fleet.first.pid != before.pid
        assert [what for what, _ in fleet.said] == ["up", "down", "up"]
    assert metrics.REPLICA_RESTARTS._value.get() == restarts + 1


async def test_the_embedded_server_is_back_on_the_same_url_after_a_kill() -> None:
    async with running(*cpu_commands(1)) as fleet:
        await until(fleet.all_up)
        url = fleet.first.url
        os.kill(pid_of(fleet.first), signal.SIGKILL)
        await until(lambda: fleet.first.restarts == 1 and fleet.all_up())
        assert fleet.first.url == url
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{url}/health")).status_code == 200


async def test_stop_leaves_no_process_and_says_down_once() -> None:
    async with running(command(SERVE)) as fleet:
        await until(fleet.all_up)
        pid = pid_of(fleet.first)
    assert not is_alive(pid)
    assert [what for what, _ in fleet.said] == ["up", "down"]
    assert (fleet.first.state, fleet.first.pid) == (ReplicaState.STOPPED, None)


async def test_stop_kills_a_replica_that_ignores_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "STOP_SECONDS", 0.2)
    async with running(command(IGNORE_SIGTERM + SERVE)) as fleet:
        await until(fleet.all_up)
        pid = pid_of(fleet.first)
    assert not is_alive(pid)


async def test_helpers_of_a_dead_replica_are_killed_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    async with running(command(LEAVE_A_HELPER + SERVE, str(note))) as fleet:
        await until(fleet.all_up)
        helper = int(note.read_text())
        os.kill(pid_of(fleet.first), signal.SIGKILL)
        await until(lambda: fleet.first.restarts == 1 and fleet.all_up())
        assert not is_alive(helper)


async def test_a_replica_that_never_gets_ready_is_tried_again_and_never_said_to_be_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.01)
    async with running(command("sys.exit(2)")) as fleet:
        await until(lambda: fleet.first.restarts >= 2)
    assert fleet.said == []


async def test_a_program_that_does_not_exist_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.01)
    missing = ReplicaCommand("missing", lambda port: ["/no/such/program"], READY)
    async with running(missing, command(SERVE)) as fleet:
        await until(lambda: fleet.first.restarts >= 1 and fleet.supervisor.processes()[1].state is ReplicaState.UP)


SUPERVISE = """
import asyncio
from app.replicas.cpu_fleet import cpu_commands
from app.replicas.supervisor import Supervisor
from app.telemetry.logs import configure_logging

async def main():
    configure_logging("info")
    supervisor = Supervisor(cpu_commands(1), on_up=lambda url: print(url, flush=True), on_down=print)
    await supervisor.start()
    print(supervisor.processes()[0].pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_children_end_when_their_parent_is_killed() -> None:
    with python("-c", SUPERVISE) as parent:
        replica = int(next_line(parent))
        assert next_line(parent).startswith("http://")
        assert is_alive(replica)
        parent.kill()
        await until(lambda: not is_alive(replica))
