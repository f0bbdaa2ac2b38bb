"""Run by Alembic: migrate over the connection that `app.journal.migrate` hands in."""

from alembic import context

from app.journal.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
