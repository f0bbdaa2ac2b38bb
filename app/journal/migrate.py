"""Bring the database to the newest schema."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from app.errors import StartError

_MIGRATIONS = Path(__file__).with_name("migrations")


def migrate(connection: Connection) -> None:
    """Upgrade to the newest revision within the connection's transaction.

    Raises `StartError` where the database was written by a newer pagefleet.
    """
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if unknown := set(MigrationContext.configure(connection).get_current_heads()) - known:
        raise StartError(f"the journal's schema {', '.join(unknown)} is newer than this pagefleet: upgrade pagefleet")
    command.upgrade(config, "head")
