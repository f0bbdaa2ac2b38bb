"""The stores that the contract of the journal is tested on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.journal import Journal
from app.settings import Settings
from tests.journals import settings_for


@pytest.fixture(params=["sqlite"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a gateway with an empty store of its own."""
    return settings_for(tmp_path / "data", max_queued_pages=10_000)


@pytest.fixture
async def journal(settings: Settings) -> AsyncIterator[Journal]:
    journal = await Journal.open(settings)
    yield journal
    await journal.close()
