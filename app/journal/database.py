"""Transactions, the threads that they run in, and what goes wrong with them."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, Executable, Row, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.errors import StoreUnavailable
from app.journal.outage import Outage
from app.telemetry.logs import get_logger

Result = TypeVar("Result")

POOL_WAIT_SECONDS = 30
_DEADLINE_SECONDS = 40
"""Whoever called is not kept waiting longer by a database that accepts everything and answers nothing."""
_REPEAT_AFTER_SECONDS = (0.05, 0.2, 0.8)

_log = get_logger("journal")


class Driver(Protocol):
    """What is different from one database to another."""

    @property
    def writer(self) -> Engine:
        """Connections for write transactions, one for each of `writers` threads."""

    @property
    def readers(self) -> Engine:
        """Connections that see what is committed, one for each of `read_threads`."""

    @property
    def write_threads(self) -> int: ...

    @property
    def read_threads(self) -> int: ...

    def now(self, connection: Connection) -> datetime:
        """The time in UTC by the one clock of all who use the database."""

    def is_away(self, error: DBAPIError) -> bool:
        """Whether nothing at all can be had from the database now."""

    def is_passing(self, error: DBAPIError) -> bool:
        """Whether the transaction was rolled back only because of others: it may be run again at once."""

    def reason(self, error: DBAPIError) -> str:
        """Why the database can't be used, for people; names no host, path or credential."""


class Transaction:
    """A write transaction, and what to announce once it is durable."""

    def __init__(self, connection: Connection, driver: Driver) -> None:
        self.connection = connection
        self._driver = driver
        self._announcements: list[Callable[[], None]] = []

    @cached_property
    def now(self) -> datetime:
        """The time in UTC, the same all through the transaction."""
        return self._driver.now(self.connection)

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

    def insert_if_absent(self, table: Table, values: Mapping[str, Any]) -> bool:
        """Insert a row unless there is one with its primary key, or another transaction commits one; whether it did."""
        on_postgres = self.connection.dialect.name == postgresql.dialect.name
        insert = (postgresql.insert if on_postgres else sqlite.insert)(table)
        return self.run(insert.values(values).on_conflict_do_nothing()) > 0

    def after(self, announcement: Callable[[], None]) -> None:
        """Call `announcement` in the event loop when the transaction is durable; never if it fails."""
        self._announcements.append(announcement)

    def announce(self) -> None:
        for announcement in self._announcements:
            announcement()


class _CommitUnknownError(Exception):
    """The connection broke before the database said whether it has committed."""


class Database:
    """Runs transactions.

    A transaction is a plain function of a synchronous connection, run in a thread: one hop between threads for a whole
    transaction, where an asynchronous driver pays one, and five times the time, for every statement.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._write_threads = ThreadPoolExecutor(driver.write_threads, "journal-write")
        self._read_threads = ThreadPoolExecutor(driver.read_threads, "journal-read")
        self._writes: set[asyncio.Task[Any]] = set()
        self._outage = Outage()
        self._closed = False

    async def close(self) -> None:
        """Let running transactions end, then close; later calls raise `StoreUnavailable`."""
        self._closed = True
        await asyncio.gather(*self._writes, return_exceptions=True)
        self._write_threads.shutdown()
        self._read_threads.shutdown()
        self._driver.writer.dispose()
        self._driver.readers.dispose()

    async def read(self, statement: Executable) -> Sequence[Row[Any]]:
        """Rows of one SELECT: one consistent view. Raises `StoreUnavailable`."""
        self._refuse_if_unusable()
        with self._store_errors():
            async with asyncio.timeout(_DEADLINE_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._read_threads, self._select, statement)

    def _select(self, statement: Executable) -> Sequence[Row[Any]]:
        self._outage.check()  # it may have begun while this call waited for its thread
        try:
            rows = self._select_once(statement)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            rows = self._select_once(statement)  # the connection had died in the pool, maybe long ago
        self._outage.end()
        return rows

    def _select_once(self, statement: Executable) -> Sequence[Row[Any]]:
        with self._driver.readers.connect() as connection:
            return connection.execute(statement).all()

    async def write(
        self, work: Callable[[Transaction], Result], *, repeatable: bool = False, seconds: float = _DEADLINE_SECONDS
    ) -> Result:
        """Run `work` in a transaction of its own, again where it was rolled back because of others.

        `repeatable`: it does no harm to run it once more after it was committed, so it is run again also where the
        database's answer to the commit was lost. Otherwise that is `StoreUnavailable`, like all else that time mends.
        So is no end within `seconds`; then the transaction is rolled back unless its commit had begun.

        A caller that is cancelled leaves, the transaction goes on to its end. Raises what `work` raises.
        """
        self._refuse_if_unusable()
        task = asyncio.create_task(self._write(work, repeatable, time.monotonic() + seconds))
        self._writes.add(task)
        task.add_done_callback(self._ended)
        with self._store_errors():
            async with asyncio.timeout(seconds):
                return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have left, and asyncio would complain that nobody has looked at it

    async def _write(self, work: Callable[[Transaction], Result], repeatable: bool, deadline: float) -> Result:
        with self._store_errors():
            for delay in _REPEAT_AFTER_SECONDS:
                try:
                    return await self._attempt(work, deadline)
                except DBAPIError as error:
                    # A broken connection may have died in the pool, maybe long ago; its transaction did nothing.
                    if not (error.connection_invalidated or self._driver.is_passing(error)):
                        raise
                except _CommitUnknownError:
                    if not repeatable:
                        raise
                await asyncio.sleep(delay)
            return await self._attempt(work, deadline)

    async def _attempt(self, work: Callable[[Transaction], Result], deadline: float) -> Result:
        loop = asyncio.get_running_loop()
        transaction, result = await loop.run_in_executor(self._write_threads, self._run, work, deadline)
        transaction.announce()
        return result

    def _run(self, work: Callable[[Transaction], Result], deadline: float) -> tuple[Transaction, Result]:
        self._outage.check()
        _refuse_if_late(deadline)
        with self._driver.writer.connect() as connection:
            self._outage.end()
            ending = connection.begin()
            transaction = Transaction(connection, self._driver)
            with ending:
                result = work(transaction)
                _refuse_if_late(deadline)
                try:
                    ending.commit()
                except DBAPIError as error:
                    if error.connection_invalidated:
                        raise _CommitUnknownError from error
                    raise
            return transaction, result

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Turn what time may mend (locked, full, unreadable, gone) into `StoreUnavailable`; our own mistakes pass."""
        try:
            yield
        except (IntegrityError, ProgrammingError):
            raise
        except DBAPIError as error:
            if error.orig is not None and type(error.orig).__name__ == "DataError":
                raise
            if self._driver.is_away(error):
                self._outage.begin(str(error.orig))
            else:
                _log.error("store unavailable", reason=str(error.orig))
            raise StoreUnavailable(self._driver.reason(error)) from error
        except _CommitUnknownError as error:
            _log.error("store unavailable", reason="the answer to a commit was lost")
            raise StoreUnavailable(
                "the database did not say whether it has taken this; look before you repeat it"
            ) from error
        except (TimeoutError, PoolTimeoutError) as error:
            _log.error("store unavailable", reason=str(error) or "no answer")
            raise StoreUnavailable("the database does not answer") from error

    def _refuse_if_unusable(self) -> None:
        self._outage.check()
        if self._closed:
            raise StoreUnavailable("the journal is closed")


def _refuse_if_late(deadline: float) -> None:
    """What nobody waits for any more is not done: a claim would bind pages, an upload be there twice."""
    if time.monotonic() >= deadline:
        raise StoreUnavailable("the database does not answer")
