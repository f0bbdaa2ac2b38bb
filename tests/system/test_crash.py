"""The short form of the crash test; `python -m tests.crash` is the long one."""

from pathlib import Path

from tests.crash.scenario import crash_test
from tests.crash.stores import sqlite


async def test_nothing_is_lost_or_read_twice_whatever_is_killed(tmp_path: Path) -> None:
    report = await crash_test(tmp_path, sqlite(tmp_path), kills=8, seed=1)
    print(report.figures)
    assert report.faults == []
