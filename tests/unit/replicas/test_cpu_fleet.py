import importlib.util
import sys
from pathlib import Path

import pytest

from app.errors import StartError
from app.replicas import cpu_fleet
from app.replicas.cpu_fleet import cpu_commands, default_count, free_memory_bytes
from app.settings import MIB, cpu_count


def ports(count: int, port: int) -> list[int]:
    return [command.port for command in cpu_commands(count, port=port)]


def test_replicas_take_the_ports_from_the_given_one_on_or_free_ones() -> None:
    assert ports(3, 9000) == [9000, 9001, 9002]
    assert ports(3, 0) == [0, 0, 0]


def test_ports_that_end_are_a_start_error() -> None:
    assert ports(1, 65535) == [65535]
    with pytest.raises(StartError, match="65535"):
        cpu_commands(2, port=65535)


def test_the_command_line_names_host_and_port() -> None:
    [command] = cpu_commands(1, host="0.0.0.0")
    argv = list(command.argv(1234))
    assert argv[argv.index("--host") + 1] == "0.0.0.0"
    assert argv[argv.index("--port") + 1] == "1234"


def test_children_import_what_their_parent_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "/elsewhere"])
    [command] = cpu_commands(1)
    assert command.environment["PYTHONPATH"] == f"{tmp_path}:/elsewhere"
    assert "-P" in command.argv(0)


def test_the_ready_line_gives_the_url() -> None:
    [command] = cpu_commands(1)
    match = command.ready.search("pagefleet cpu replica listening on http://127.0.0.1:4711")
    assert match is not None
    assert match["url"] == "http://127.0.0.1:4711"


def test_a_missing_engine_is_a_start_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_fleet, "find_spec", lambda name: importlib.util.find_spec(f"no_{name}"))
    with pytest.raises(StartError, match=r"pagefleet\[cpu\]"):
        cpu_commands(1)


@pytest.mark.parametrize(
    ("free_bytes", "count"), [(None, 8), (100 * 1024 * MIB, 8), (1100 * MIB, 2), (1023 * MIB, 1), (0, 1)]
)
def test_the_default_count_is_bounded_by_cpus_and_memory(
    free_bytes: int | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_fleet, "cpu_count", lambda: 8)
    monkeypatch.setattr(cpu_fleet, "free_memory_bytes", lambda: free_bytes)
    assert default_count() == count


def test_the_default_count_here_is_possible() -> None:
    assert 1 <= default_count() <= cpu_count()


def write_cgroup(folder: Path, limit: str) -> Path:
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{700 * MIB}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {200 * MIB}\nactive_file 7\n")
    return folder


def test_free_memory_is_the_tighter_of_machine_and_cgroup(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 9 kB\nMemAvailable:   {4096 * 1024} kB\n")
    nothing = tmp_path / "nothing"
    assert free_memory_bytes(meminfo, write_cgroup(tmp_path, str(1024 * MIB))) == 524 * MIB
    assert free_memory_bytes(meminfo, write_cgroup(tmp_path, "max")) == 4096 * MIB
    assert free_memory_bytes(nothing, write_cgroup(tmp_path, str(600 * MIB))) == 100 * MIB
    assert free_memory_bytes(nothing, write_cgroup(tmp_path, str(100 * MIB))) == 0
    assert free_memory_bytes(nothing, nothing) is None
