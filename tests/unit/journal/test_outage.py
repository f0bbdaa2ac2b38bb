"""Calls to a database that is away."""

import time

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine.interfaces import DBAPIConnection

from app.errors import StoreUnavailable
from app.journal.database import Database
from app.journal.outage import TRIAL_SECONDS, Outage
from app.journal.postgres import PostgresDriver
from app.journal.tables import tenants
from tests.servers.server import free_ports


def test_between_two_trials_calls_fail_at_once() -> None:
    seconds = 0.0
    outage = Outage(lambda: seconds)
    outage.check()
    outage.begin("refused")
    with pytest.raises(StoreUnavailable):
        outage.check()
    seconds += TRIAL_SECONDS
    outage.check()
    outage.begin("refused")
    with pytest.raises(StoreUnavailable):
        outage.check()


def test_one_call_that_is_answered_ends_it() -> None:
    outage = Outage(lambda: 0.0)
    outage.begin("refused")
    outage.end()
    outage.check()


async def test_a_server_that_is_not_there_is_asked_now_and_then_only() -> None:
    (port,) = free_ports(1)
    driver = PostgresDriver(f"postgresql://somebody:secret@127.0.0.1:{port}/none")
    connections: list[float] = []
    database = Database(driver)

    @event.listens_for(driver.writer, "do_connect")
    @event.listens_for(driver.readers, "do_connect")
    def note(*_: object) -> DBAPIConnection | None:
        connections.append(time.monotonic())
        return None

    for _ in range(20):
        with pytest.raises(StoreUnavailable) as caught:
            await database.read(select(tenants))
        assert "secret" not in str(caught.value.problem())
        with pytest.raises(StoreUnavailable):
            await database.write(lambda transaction: transaction.scalar(select(tenants)))
    await database.close()
    assert 1 <= len(connections) < 10
