"""Transactions and their faults, on a real file."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from app.errors import StoreUnavailable
from app.journal import sqlite as sqlite_driver
from app.journal.database import Database, Transaction
from app.journal.sqlite import SqliteDriver
from app.journal.tables import metadata, tenants
from tests.waiting import until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite3"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[Database]:
    database = Database(SqliteDriver(path))
    await database.write(lambda transaction: metadata.create_all(transaction.connection))
    yield database
    await database.close()


class Add:
    """Work that adds a tenant and counts how often it was run and announced."""

    def __init__(self, name: str, fault: Exception | None = None) -> None:
        self.name = name
        self.fault = fault
        self.runs = 0
        self.started = threading.Event()
        self.announced = 0

    def __call__(self, transaction: Transaction) -> None:
        self.runs += 1
        self.started.set()
        transaction.after(self._announce)
        transaction.run(insert(tenants).values(name=self.name))
        if self.fault:
            raise self.fault

    def _announce(self) -> None:
        self.announced += 1


async def names(database: Database) -> list[str]:
    return [row.name for row in await database.read(select(tenants.c.name).order_by(tenants.c.name))]


async def test_a_transaction_is_announced_when_others_can_read_it(database: Database, path: Path) -> None:
    seen: list[int] = []

    def work(transaction: Transaction) -> None:
        def count() -> None:
            with closing(sqlite3.connect(path)) as other:
                seen.extend(other.execute("SELECT count(*) FROM tenants").fetchone())

        transaction.after(count)
        transaction.run(insert(tenants).values(name="a"))

    await database.write(work)

    assert seen == [1]


async def test_work_that_raises_leaves_nothing_and_announces_nothing(database: Database) -> None:
    work = Add("a", ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await database.write(work)
    assert await names(database) == []
    assert (work.runs, work.announced) == (1, 0)


async def test_our_own_mistakes_are_not_the_stores(database: Database) -> None:
    await database.write(Add("a"))
    with pytest.raises(IntegrityError):
        await database.write(Add("a"))


async def test_a_cancelled_caller_leaves_the_transaction_to_its_end(database: Database) -> None:
    work = Add("a")
    may_end = threading.Event()

    def slowly(transaction: Transaction) -> None:
        work(transaction)
        may_end.wait(30)

    writing = asyncio.create_task(database.write(slowly))
    await until(work.started.is_set)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    may_end.set()

    await database.write(Add("b"))

    assert await names(database) == ["a", "b"]
    assert work.announced == 1


async def test_a_transaction_that_takes_too_long_is_given_up(database: Database) -> None:
    work = Add("a")
    may_end = threading.Event()

    def slowly(transaction: Transaction) -> None:
        work(transaction)
        may_end.wait(30)

    waiting = Add("b")
    gives_up = [database.write(slowly, seconds=0.2), database.write(waiting, seconds=0.2)]
    for result in await asyncio.gather(*gives_up, return_exceptions=True):
        assert isinstance(result, StoreUnavailable)
    may_end.set()
    await database.write(Add("c"))
    assert await names(database) == ["c"]
    assert (work.announced, waiting.runs) == (0, 0)


async def test_cancelled_reads_harm_no_later_one(database: Database) -> None:
    await database.write(Add("a"))
    for turn in range(40):
        reading = asyncio.create_task(names(database))
        for _ in range(turn % 10):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
    assert await asyncio.gather(*[names(database) for _ in range(10)]) == [["a"]] * 10


async def test_a_lock_of_another_program_is_waited_for(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(database.write(Add("a")))
        await asyncio.sleep(0.1)
        assert await names(database) == []  # readers don't wait
        other.execute("COMMIT")
        await writing
    assert await names(database) == ["a"]


async def test_work_is_run_again_where_the_lock_outlasts_the_drivers_patience(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_driver, "_BUSY_SECONDS", 0.01)
    database = Database(SqliteDriver(path))
    await database.write(lambda transaction: metadata.create_all(transaction.connection))
    work = Add("a")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(database.write(work))
        await asyncio.sleep(0.04)
        other.execute("COMMIT")
        await writing
    assert await names(database) == ["a"]
    assert work.announced == 1
    await database.close()


async def test_a_lock_that_is_never_let_go_makes_the_store_unavailable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_driver, "_BUSY_SECONDS", 0.01)
    database = Database(SqliteDriver(path))
    await database.write(lambda transaction: metadata.create_all(transaction.connection))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable) as caught:
            await database.write(Add("a"))
    assert str(path) not in str(caught.value.problem())
    await database.write(Add("a"))
    await database.close()


async def test_a_full_disk_makes_the_store_unavailable_until_there_is_room(database: Database) -> None:
    await database.write(Add("a"))
    await database.write(lambda transaction: transaction.run(text("PRAGMA max_page_count = 1")))
    with pytest.raises(StoreUnavailable):
        await database.write(Add("b" * 1_000_000))
    await database.write(lambda transaction: transaction.run(text("PRAGMA max_page_count = 1000000")))
    await database.write(Add("c"))
    assert await names(database) == ["a", "c"]


async def test_close_lets_running_transactions_end(path: Path, database: Database) -> None:
    writing = asyncio.create_task(database.write(Add("a")))
    await asyncio.sleep(0)
    await database.close()
    await writing
    with pytest.raises(StoreUnavailable):
        await names(database)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM tenants").fetchall() == [("a",)]
