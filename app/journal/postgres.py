"""The journal on PostgreSQL, which several gateways share."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from app.errors import StartError
from app.journal.database import POOL_WAIT_SECONDS
from app.journal.tables import EPOCH

_WRITERS = 4
"""A large upload is written beside page commits, not before them."""
_READERS = 4
_SESSION = ("statement_timeout = '30s'", "lock_timeout = '10s'", "idle_in_transaction_session_timeout = '30s'")
"""A statement that hangs, or a gateway that stops within a transaction, must not hold others for ever."""
CONNECTION_PARAMETERS: dict[str, Any] = {
    "connect_timeout": 5,  # seconds
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,  # milliseconds: a host that is gone without a word is noticed within it
    "application_name": "pagefleet",
}
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_PASSING = ("40001", "40P01", "55P03")
"""Serialization failure, deadlock, lock not had in time."""
_AWAY = ("08", "57P", "53300")
"""Connection failures, shutting down or starting, too many connections; without a state there was no answer at all."""
_REASONS = {"53100": "no space left for the database", "25006": "the database can't be written"}


class PostgresDriver:
    """READ COMMITTED transactions that lock rows in one order: tenant, document, page."""

    write_threads = _WRITERS
    read_threads = _READERS

    def __init__(self, url: str) -> None:
        """Raises `StartError` where the URL is none, or the driver is not installed."""
        self.writer = _engine(url, connections=_WRITERS)
        self.readers = _engine(url, connections=_READERS).execution_options(isolation_level="AUTOCOMMIT")

    def now(self, connection: Connection) -> datetime:
        microseconds: int = connection.exec_driver_sql(_NOW).scalar_one()
        return EPOCH + timedelta(microseconds=microseconds)

    def is_away(self, error: DBAPIError) -> bool:
        state = _state(error)
        return not state or state.startswith(_AWAY)

    def is_passing(self, error: DBAPIError) -> bool:
        return _state(error) in _PASSING

    def reason(self, error: DBAPIError) -> str:
        return _REASONS.get(_state(error), "the database can't be reached")


def _engine(url: str, connections: int) -> Engine:
    try:
        parsed = make_url(url).set(drivername="postgresql+psycopg")
        engine = create_engine(
            parsed,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=POOL_WAIT_SECONDS,
            hide_parameters=True,  # errors are logged, and parameters hold passwords and page text
            connect_args={name: value for name, value in CONNECTION_PARAMETERS.items() if name not in parsed.query},
        )
    except ArgumentError:
        raise StartError("the database URL can't be read") from None  # it may hold a password
    except ModuleNotFoundError:
        raise StartError("PostgreSQL needs a driver: pip install 'pagefleet[postgres]'") from None
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    connection.autocommit = True
    cursor = connection.cursor()
    for setting in _SESSION:
        cursor.execute(f"SET {setting}")
    cursor.close()
    connection.autocommit = False


def _state(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", None) or "")
