"""The journal in a SQLite file: one connection that writes, a few that read."""

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from app.journal.database import POOL_WAIT_SECONDS

_READERS = 4
_BUSY_SECONDS = 0.5
"""How long SQLite itself waits for a lock of another program: a backup, a shell."""
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")
_REASONS = {
    "SQLITE_BUSY": "the database is locked by another program",
    "SQLITE_FULL": "no space left for the database",
    "SQLITE_READONLY": "the database can't be written",
    "SQLITE_CORRUPT": "the database is damaged",
    "SQLITE_NOTADB": "the database is damaged",
}


class SqliteDriver:
    """Write transactions one after the other, each BEGIN IMMEDIATE, in WAL, synced to the disk."""

    write_threads = 1
    read_threads = _READERS

    def __init__(self, path: Path) -> None:
        url = URL.create("sqlite+pysqlite", database=str(path))
        self.writer = _engine(url, connections=1)
        self.readers = _engine(url, connections=_READERS)
        event.listen(self.writer, "begin", _begin_immediate)

    def now(self, connection: Connection) -> datetime:
        return datetime.now(UTC)

    def is_away(self, error: DBAPIError) -> bool:
        return False

    def is_passing(self, error: DBAPIError) -> bool:
        return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))

    def reason(self, error: DBAPIError) -> str:
        name = "_".join(_name(error).split("_")[:2])  # an extended code goes on after the primary one
        return _REASONS.get(name, "the database can't be used")


def _engine(url: URL, connections: int) -> Engine:
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
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


def _name(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlite_errorname", ""))
