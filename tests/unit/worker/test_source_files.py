"""Files that pages wait for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.errors import NotFound, PagefleetError, SourceUnavailable, StoreUnavailable
from app.journal.blobs import FolderBlobs
from app.worker import source_files
from app.worker.source_files import SourceFiles
from tests.unit.worker.parts import DEADLINE_SECONDS
from tests.waiting import until

SHORT_SECONDS = 0.1


@pytest.fixture(autouse=True)
def quick_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "PAUSE_SECONDS", 0.001)


class Store(FolderBlobs):
    """Fails as often as it is told, then gives its own folder."""

    def __init__(self, root: Path, faults: int, fault: PagefleetError | None = None) -> None:
        super().__init__(root)
        self.root = root
        self.faults = faults
        self.fault = fault or StoreUnavailable("the file can't be fetched: the object store fails")
        self.asked = 0
        self.held = 0

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        self.asked += 1
        if self.asked <= self.faults:
            raise self.fault
        self.held += 1
        yield self.root
        self.held -= 1


async def fetch(store: Store, seconds: float = DEADLINE_SECONDS) -> None:
    async with SourceFiles(store, seconds).local("key") as path:
        assert path == store.root
        assert store.held == 1


async def test_a_store_that_was_away_for_a_while_is_asked_until_it_is_back(tmp_path: Path) -> None:
    store = Store(tmp_path, faults=5)
    await fetch(store)
    assert (store.asked, store.held) == (6, 0)


async def test_the_pauses_grow_to_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(source_files, "PAUSE_SECONDS", 1)
    monkeypatch.setattr(asyncio, "sleep", pause)
    await fetch(Store(tmp_path, faults=6))
    assert pauses == [1, 2, 4, 8, 10, 10]


async def test_a_store_that_stays_away_is_the_end_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="the object store fails") as caught:
        await fetch(Store(tmp_path, faults=10**9), SHORT_SECONDS)
    assert caught.value.problem()["retryable"]


async def test_a_store_that_is_silent_is_the_end_too(tmp_path: Path) -> None:
    class Silent(Store):
        @asynccontextmanager
        async def local(self, key: str) -> AsyncIterator[Path]:
            await asyncio.Event().wait()
            yield self.root

    with pytest.raises(SourceUnavailable, match="not fetched in time"):
        await fetch(Silent(tmp_path, faults=0), SHORT_SECONDS)


async def test_a_file_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    store = Store(tmp_path, 10**9, NotFound("the uploaded file is gone"))
    with pytest.raises(SourceUnavailable, match="the uploaded file is gone"):
        await fetch(store)
    assert store.asked == 1


async def test_a_page_that_waits_can_be_cancelled_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "PAUSE_SECONDS", 3600)
    store = Store(tmp_path, faults=10**9)
    waiting = asyncio.create_task(fetch(store, 10**6))
    await until(lambda: store.asked == 1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
