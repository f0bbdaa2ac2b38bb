"""The short form of the crash test on PostgreSQL, with two gateways."""

from pathlib import Path

from tests.crash.scenario import crash_test
from tests.crash.stores import postgresql
from tests.servers import PostgresServer


async def test_nothing_is_lost_or_read_twice_whatever_gateway_is_killed(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    store = postgresql(tmp_path, postgres.create_database())
    report = await crash_test(tmp_path, store, kills=8, seed=1)
    print(report.figures)
    assert report.faults == []
