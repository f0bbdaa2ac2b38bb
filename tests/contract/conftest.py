"""The store that the contract of the journal is tested on: `pytest tests/contract --store=sqlite|postgresql`."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.journal import Journal
from app.settings import Settings
from tests.journals import settings_for
from tests.servers import PostgresServer


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """An empty PostgreSQL database; None: SQLite in the data directory."""
    if request.config.getoption("--store") == "sqlite":
        yield None
        return
    postgres: PostgresServer = request.getfixturevalue("postgres")
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def settings(database_url: str | None, tmp_path: Path) -> Settings:
    """Settings of a gateway with an empty store of its own."""
    return settings_for(tmp_path / "data", database_url=database_url, max_queued_pages=10_000)


@pytest.fixture
async def journal(settings: Settings) -> AsyncIterator[Journal]:
    journal = await Journal.open(settings)
    yield journal
    await journal.close()
