"""Bring the database to the newest schema."""

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from app.errors import StartError

_MIGRATIONS = Path(__file__).with_name("migrations")


_ONE_AT_A_TIME = ("SET LOCAL statement_timeout = 0", "SET LOCAL lock_timeout = 0", "SELECT pg_advisory_xact_lock(7067)")
"""Gateways that start together on PostgreSQL migrate one after the other, however long it takes; the number is ours."""


def migrate(connection: Connection, revision: str = "head") -> None:
    """Upgrade to the newest revision, or to the one named, within the connection's transaction.

    Raises `StartError` where the database was written by a newer pagefleet.
    """
    if connection.dialect.name == "postgresql":
        for statement in _ONE_AT_A_TIME:
            connection.exec_driver_sql(statement)
    if unknown := set(MigrationContext.configure(connection).get_current_heads()) - set(revisions()):
        raise StartError(f"the journal's schema {', '.join(unknown)} is newer than this pagefleet: upgrade pagefleet")
    command.upgrade(_config(connection=connection), revision)


def revisions() -> list[str]:
    """All that this pagefleet knows, the first one first."""
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return [script.revision for script in scripts][::-1]


def _config(**attributes: Any) -> Config:
    config = Config(attributes=attributes)
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config
