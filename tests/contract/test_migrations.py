"""From the first revision up, with what was stored then."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from app.documents.states import DocumentState
from app.journal import Journal
from app.journal.migrate import migrate, revisions
from app.journal.tables import metadata
from app.settings import Settings
from tests.journals import PROFILES, driver_of, run_sql, succeeded

ID = "01900000-0000-7000-8000-000000000000"
STORED_AT_FIRST = (
    "INSERT INTO tenants (name, pages_queued) VALUES ('default', 1)",
    "INSERT INTO documents (id, tenant, state, filename, media_type, bytes, sha256, blob_key, priority, ttl_seconds,"
    " metadata, warnings, pages_total, pages_queued, pages_running, seq, created_at)"
    f" VALUES ('{ID}', 'default', 'running', 'a.pdf', 'application/pdf', 10, 'aa', 'v1/default/{ID}/source', 3, 60,"
    " '{}', '[]', 2, 1, 1, 1, 0)",
    "INSERT INTO pages (document_id, number, state, queued_at, claim_number, claim_owner)"
    f" VALUES ('{ID}', 1, 'running', 0, 1, 'gone'), ('{ID}', 2, 'queued', 0, 0, NULL)",
    f"INSERT INTO events (document_id, seq, kind) VALUES ('{ID}', 1, 'document')",
)


def migrate_to(settings: Settings, revision: str) -> None:
    settings.data_dir.mkdir(exist_ok=True)
    driver = driver_of(settings)
    with driver.writer.begin() as connection:
        migrate(connection, revision)
    driver.writer.dispose()


@pytest.mark.parametrize("revision", revisions())
async def test_a_document_half_read_under_an_old_revision_is_read_to_its_end(settings: Settings, revision: str) -> None:
    migrate_to(settings, "0001")
    for statement in STORED_AT_FIRST:
        run_sql(settings, statement)
    migrate_to(settings, revision)

    journal = await Journal.open(settings)
    claims = await journal.claim(5, PROFILES)
    assert sorted(claim.page for claim in claims) == [1, 2]
    for claim in claims:
        assert await journal.commit(claim, succeeded())
    document = await journal.document(ID)
    await journal.close()
    assert document.state is DocumentState.SUCCEEDED


def test_the_migrated_database_has_the_tables_of_the_code(settings: Settings) -> None:
    migrate_to(settings, "head")
    driver = driver_of(settings)
    with driver.readers.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    driver.readers.dispose()
