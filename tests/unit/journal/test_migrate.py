"""The schema that the migrations make is the one that the code uses."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from app.journal.migrate import migrate
from app.journal.tables import metadata


def migrated(path: Path) -> Connection:
    connection = create_engine(f"sqlite:///{path}", poolclass=NullPool).connect()
    migrate(connection)
    return connection


def schema(connection: Connection) -> dict[str, str]:
    """The statements that made the tables and indexes: defaults and conditions of indexes too."""
    rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {row.name: row.sql for row in rows if row.name != "alembic_version"}


def test_the_migrated_database_has_the_tables_of_the_code(tmp_path: Path) -> None:
    with (
        migrated(tmp_path / "a.sqlite3") as connection,
        create_engine("sqlite://", poolclass=NullPool).connect() as made,
    ):
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        metadata.create_all(made)
        assert schema(connection) == schema(made)


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    with migrated(tmp_path / "a.sqlite3") as connection:
        before = schema(connection)
        migrate(connection)
        assert schema(connection) == before
