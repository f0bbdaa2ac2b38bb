"""What is erased, and when."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.documents.records import NewDocument
from app.errors import StoreUnavailable
from app.journal import Journal
from app.journal.blobs import FolderBlobs, blob_key
from app.settings import Settings
from app.worker import Sweeper
from app.worker.orphans import Orphans
from tests.blobs import keys_of
from tests.journals import new_document, read_all
from tests.waiting import until

ORPHAN = blob_key("default", "0198")
OVER = -1
"""A time to live that is over when it begins."""
LONG_SECONDS = 10**6


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = await Journal.open(Settings(data_dir=tmp_path))
    yield journal
    await journal.close()


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs")


async def put(tmp_path: Path, blobs: FolderBlobs, key: str) -> str:
    spool = tmp_path / "a.part"
    spool.write_bytes(b"%PDF")
    await blobs.publish(spool, key)
    return key


async def add(tmp_path: Path, journal: Journal, blobs: FolderBlobs, **values: Any) -> NewDocument:
    new = new_document(1, **values)
    await put(tmp_path, blobs, new.blob_key)
    await journal.add_document(new)
    return new


async def test_bytes_without_a_row_are_erased_when_they_are_old_enough(
    tmp_path: Path, journal: Journal, blobs: FolderBlobs
) -> None:
    kept = await add(tmp_path, journal, blobs)
    await put(tmp_path, blobs, ORPHAN)
    orphans = Orphans(journal, blobs)

    assert await orphans.sweep(LONG_SECONDS) == 0
    assert await orphans.sweep(LONG_SECONDS) == 0
    assert await orphans.sweep(0) == 1
    assert await keys_of(blobs) == [kept.blob_key]


async def test_an_upload_whose_row_comes_late_is_no_orphan(
    tmp_path: Path, journal: Journal, blobs: FolderBlobs
) -> None:
    new = new_document(1)
    await put(tmp_path, blobs, new.blob_key)
    orphans = Orphans(journal, blobs)
    await orphans.sweep(LONG_SECONDS)

    await journal.add_document(new)

    assert await orphans.sweep(0) == 0
    assert await keys_of(blobs) == [new.blob_key]


async def test_a_file_that_says_it_is_old_has_its_time_all_the_same(
    tmp_path: Path, journal: Journal, blobs: FolderBlobs
) -> None:
    """Its clock may be wrong: another machine's, or one that jumped."""
    await put(tmp_path, blobs, ORPHAN)
    os.utime(tmp_path / "blobs" / ORPHAN, (0, 0))

    assert await Orphans(journal, blobs).sweep(3600) == 0


class Stubborn(FolderBlobs):
    """Erases nothing as long as it is away."""

    away = True

    async def delete(self, key: str) -> None:
        if self.away:
            raise StoreUnavailable
        await super().delete(key)


async def test_an_erasure_that_the_store_refuses_stops_nothing_and_is_made_up_for(
    tmp_path: Path, journal: Journal
) -> None:
    blobs = Stubborn(tmp_path / "blobs")
    for _ in range(2):
        await add(tmp_path, journal, blobs, ttl_seconds=OVER)
    await read_all(journal)

    assert await Sweeper(journal, blobs, Settings(data_dir=tmp_path)).sweep() == 2
    assert len(await keys_of(blobs)) == 2

    orphans = Orphans(journal, blobs)
    assert await orphans.sweep(0) == 2
    blobs.away = False
    assert await orphans.sweep(0) == 2
    assert await keys_of(blobs) == []


async def test_at_the_start_of_a_gateway_that_is_alone_no_upload_can_be_under_way(
    tmp_path: Path, journal: Journal, blobs: FolderBlobs
) -> None:
    kept = await add(tmp_path, journal, blobs)
    await put(tmp_path, blobs, ORPHAN)
    sweeper = Sweeper(journal, blobs, Settings(data_dir=tmp_path))

    await sweeper.start()

    assert await keys_of(blobs) == [kept.blob_key]
    await sweeper.stop()


@pytest.mark.parametrize("shared", [{"blob_url": "/shared"}, {"database_url": "postgresql://host/base"}])
async def test_a_gateway_that_shares_gives_the_uploads_of_others_their_time(
    tmp_path: Path, journal: Journal, blobs: FolderBlobs, shared: dict[str, Any]
) -> None:
    await put(tmp_path, blobs, ORPHAN)
    sweeper = Sweeper(journal, blobs, Settings(data_dir=tmp_path, **shared))

    await sweeper.start()
    assert await keys_of(blobs) == [ORPHAN]
    await sweeper.stop()


async def test_a_running_gateway_sweeps_what_is_over_and_what_is_orphaned(
    tmp_path: Path, journal: Journal, blobs: FolderBlobs
) -> None:
    await add(tmp_path, journal, blobs, ttl_seconds=OVER)
    kept = await add(tmp_path, journal, blobs)
    await read_all(journal)
    settings = Settings(data_dir=tmp_path, orphan_seconds=0.1, sweep_interval_seconds=0.05)
    sweeper = Sweeper(journal, blobs, settings)
    await sweeper.start()
    await put(tmp_path, blobs, ORPHAN)

    async def only_one_is_left() -> bool:
        return await keys_of(blobs) == [kept.blob_key]

    await until(only_one_is_left)
    await sweeper.stop()


@pytest.mark.parametrize("fault", [StoreUnavailable(), RuntimeError("a fault of ours")])
async def test_a_sweep_that_fails_is_not_the_last(tmp_path: Path, journal: Journal, fault: Exception) -> None:
    class Failing(FolderBlobs):
        faults: ClassVar = [fault]

        async def key_batches(self) -> AsyncIterator[list[str]]:
            if self.faults:
                raise self.faults.pop()
            async for batch in super().key_batches():
                yield batch

    blobs = Failing(tmp_path / "blobs")
    await put(tmp_path, blobs, ORPHAN)
    settings = Settings(data_dir=tmp_path, blob_url=str(tmp_path / "blobs"), orphan_seconds=0.1)
    sweeper = Sweeper(journal, blobs, settings)
    await sweeper.start()
    await until(lambda: not (tmp_path / "blobs" / ORPHAN).exists())
    await sweeper.stop()
    assert blobs.faults == []
