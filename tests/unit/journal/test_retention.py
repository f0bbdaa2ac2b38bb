"""What a sweep leaves behind, and for how long."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import Gone, NotFound
from app.journal import Journal
from tests.journals import new_document, read_all, settings_for

_WEEK_MICROSECONDS = 7 * 86_400 * 1_000_000


async def test_a_tombstone_holds_no_more_than_an_id_and_goes_after_a_week(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    journal = await Journal.open(settings)
    new = new_document(2, ttl_seconds=0, password="secret")
    await journal.add_document(new)
    await read_all(journal)
    ended_at = (await journal.document(new.id)).ended_at
    assert ended_at is not None
    with closing(sqlite3.connect(settings.database_path, isolation_level=None)) as connection:
        await journal.sweep()
        rows = [
            connection.execute(f"SELECT count(*) FROM {name}").fetchone() for name in ("documents", "pages", "events")
        ]
        assert rows == [(0,)] * 3
        ((document_id, tenant, expires_at),) = connection.execute("SELECT * FROM tombstones")
        assert (document_id, tenant) == (new.id, "default")
        kept_microseconds = expires_at - ended_at.timestamp() * 1_000_000
        assert 0 <= kept_microseconds - _WEEK_MICROSECONDS < 60_000_000

        connection.execute("UPDATE tombstones SET expires_at = expires_at - ?", [_WEEK_MICROSECONDS - 60_000_000])
        assert await journal.sweep() == []
        with pytest.raises(Gone):
            await journal.document(new.id)
        connection.execute("UPDATE tombstones SET expires_at = expires_at - ?", [120_000_000])
        assert await journal.sweep() == []
    with pytest.raises(NotFound):
        await journal.document(new.id)
    await journal.close()
