"""Connections, transactions, and what goes wrong with them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Executable, Row, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError, DataError, IntegrityError, OperationalError, ProgrammingError, TimeoutError
from sqlalchemy.pool import ConnectionPoolEntry

from app.errors import StoreUnavailable
from app.telemetry.logs import get_logger

Result = TypeVar("Result")

_READERS = 4
_POOL_WAIT_SECONDS = 30
_BUSY_SECONDS = 2
"""How long SQLite itself waits for a lock of another program: a backup, a shell."""
_REPEAT_AFTER_SECONDS = (0.05, 0.2, 0.8)
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")

_log = get_logger("journal")


class Transaction:
    """A write transaction, and what to announce once it is durable."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._announcements: list[Callable[[], None]] = []

    def rows(self, statement: Executable) -> Sequence[Row[Any]]:
        return self.connection.execute(statement).all()

    def one(self, statement: Executable) -> Row[Any]:
        return self.connection.execute(statement).one()

    def one_or_none(self, statement: Executable) -> Row[Any] | None:
        return self.connection.execute(statement).one_or_none()

    def scalar(self, statement: Executable) -> Any:
        return self.connection.execute(statement).scalar()

    def run(self, statement: Executable) -> int:
        """Rows that `statement` touched."""
        return self.connection.execute(statement).rowcount

    def run_many(self, statement: Executable, parameters: Sequence[Mapping[str, Any]]) -> None:
        """Run `statement` once for each of `parameters`, of which there may be none."""
        if parameters:
            self.connection.execute(statement, parameters)

    def after(self, announcement: Callable[[], None]) -> None:
        """Call `announcement` in the event loop when the transaction is durable; never if it fails."""
        self._announcements.append(announcement)

    def announce(self) -> None:
        for announcement in self._announcements:
            announcement()


class Database:
    """A SQLite file: one connection that writes, a few that read.

    A transaction is a plain function of a synchronous connection, run in a thread: one hop between threads for a whole
    transaction, where an asynchronous driver pays one, and five times the time, for every statement.
    """

    def __init__(self, path: Path) -> None:
        url = URL.create("sqlite+pysqlite", database=str(path))
        self._writer = _engine(url, connections=1)
        self._readers = _engine(url, connections=_READERS)
        event.listen(self._writer, "begin", _begin_immediate)
        self._write_thread = ThreadPoolExecutor(1, "journal-write")
        self._read_threads = ThreadPoolExecutor(_READERS, "journal-read")
        self._writes: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def close(self) -> None:
        """Let running transactions end, then close; later calls raise `StoreUnavailable`."""
        self._closed = True
        await asyncio.gather(*self._writes, return_exceptions=True)
        self._write_thread.shutdown()
        self._read_threads.shutdown()
        self._writer.dispose()
        self._readers.dispose()

    async def read(self, statement: Executable) -> Sequence[Row[Any]]:
        """Rows of one SELECT: one consistent view. Raises `StoreUnavailable`."""
        self._refuse_if_closed()
        with _store_errors():
            return await asyncio.get_running_loop().run_in_executor(self._read_threads, self._select, statement)

    def _select(self, statement: Executable) -> Sequence[Row[Any]]:
        with self._readers.connect() as connection:
            return connection.execute(statement).all()

    async def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` in a transaction of its own; it is run again where the database was locked.

        A caller that is cancelled leaves, the transaction goes on to its end. Raises `StoreUnavailable`, and what
        `work` raises.
        """
        self._refuse_if_closed()
        task = asyncio.create_task(self._write(work))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    async def _write(self, work: Callable[[Transaction], Result]) -> Result:
        with _store_errors():
            for delay in _REPEAT_AFTER_SECONDS:
                try:
                    return await self._attempt(work)
                except OperationalError as error:
                    if not _is_busy(error):
                        raise
                await asyncio.sleep(delay)
            return await self._attempt(work)

    async def _attempt(self, work: Callable[[Transaction], Result]) -> Result:
        loop = asyncio.get_running_loop()
        transaction, result = await loop.run_in_executor(self._write_thread, self._run, work)
        transaction.announce()
        return result

    def _run(self, work: Callable[[Transaction], Result]) -> tuple[Transaction, Result]:
        with self._writer.begin() as connection:
            transaction = Transaction(connection)
            return transaction, work(transaction)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable("the journal is closed")


def _engine(url: URL, connections: int) -> Engine:
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=_POOL_WAIT_SECONDS,
        hide_parameters=True,  # errors are logged, and parameters hold passwords and page text
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    # Without this the driver begins transactions itself, and deferred: those can't wait for a lock once they have read.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _is_busy(error: OperationalError) -> bool:
    return getattr(error.orig, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turn what time may mend (locked, full, unreadable, gone) into `StoreUnavailable`; our own mistakes pass."""
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError):
        raise
    except (DatabaseError, TimeoutError) as error:
        _log.error("store unavailable", reason=str(getattr(error, "orig", None) or error))
        raise StoreUnavailable from error
