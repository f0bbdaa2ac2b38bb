"""Local copies of blobs."""

import asyncio
import errno
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from app.errors import NotFound, StoreUnavailable
from app.journal import blob_cache
from app.journal.blob_cache import BlobCache
from app.journal.blobs import store_faults
from tests.waiting import until

SIZE = 100
"""Bytes of every blob here."""


class Store:
    """What is fetched from: each download waits until the gate is open."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[str] = []
        self.fault: Exception | None = None

    async def fetch(self, key: str, path: Path) -> None:
        self.asked.append(key)
        with store_faults("the file can't be fetched"), path.open("xb") as file:
            file.write(key.encode())
            await self.gate.wait()
            if self.fault is not None:
                raise self.fault
            file.write(b"." * (SIZE - len(key)))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def cache(tmp_path: Path, store: Store) -> BlobCache:
    return BlobCache(tmp_path / "cache", 2 * SIZE, store.fetch)


async def use(cache: BlobCache, *keys: str) -> None:
    for key in keys:
        async with cache.hold(key) as path:
            assert path.stat().st_size == SIZE


def copies(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "cache").iterdir())


async def test_however_many_ask_at_once_there_is_one_download(cache: BlobCache, store: Store) -> None:
    store.gate.clear()
    readers = [asyncio.create_task(use(cache, "a")) for _ in range(20)]
    await until(lambda: store.asked != [])
    store.gate.set()
    await asyncio.gather(*readers)
    await use(cache, "a")

    assert store.asked == ["a"]


async def test_of_copies_that_nobody_uses_the_longest_unused_go_first(cache: BlobCache, store: Store) -> None:
    await use(cache, "a", "b", "a", "c", "a", "b")

    assert store.asked == ["a", "b", "c", "b"]


async def test_a_copy_in_use_stays_whatever_its_size(cache: BlobCache, tmp_path: Path, store: Store) -> None:
    async with AsyncExitStack() as stack:
        paths = [await stack.enter_async_context(cache.hold(key)) for key in "abcd"]
        await use(cache, "e")
        assert [path.read_bytes()[:1] for path in paths] == [b"a", b"b", b"c", b"d"]
    assert len(copies(tmp_path)) == 2
    await use(cache, "a", "b")  # the first two were let go last
    assert store.asked == ["a", "b", "c", "d", "e"]


async def test_one_that_waits_no_longer_spoils_nothing_for_the_others(cache: BlobCache, store: Store) -> None:
    store.gate.clear()
    leaver, stayer = asyncio.create_task(use(cache, "a")), asyncio.create_task(use(cache, "a"))
    await until(lambda: store.asked != [])
    leaver.cancel()
    await asyncio.gather(leaver, return_exceptions=True)
    store.gate.set()
    await stayer

    assert store.asked == ["a"]


async def test_a_download_for_which_nobody_waits_is_broken_off(cache: BlobCache, store: Store, tmp_path: Path) -> None:
    store.gate.clear()
    leaver = asyncio.create_task(use(cache, "a"))
    await until(lambda: store.asked != [])
    leaver.cancel()
    await asyncio.gather(leaver, return_exceptions=True)
    late = asyncio.create_task(use(cache, "a"))  # before the first one has noticed
    store.gate.set()
    await late

    assert store.asked == ["a", "a"]
    assert len(copies(tmp_path)) == 1


async def test_a_failed_download_is_told_to_all_and_tried_again_by_the_next(
    cache: BlobCache, store: Store, tmp_path: Path
) -> None:
    store.gate.clear()
    readers = [asyncio.create_task(use(cache, "a")) for _ in range(3)]
    await until(lambda: store.asked != [])
    store.fault = NotFound()
    store.gate.set()
    assert await asyncio.gather(*readers, return_exceptions=True) == [store.fault] * 3
    assert copies(tmp_path) == []

    store.fault = None
    await use(cache, "a")
    assert store.asked == ["a", "a"]


async def test_a_full_disk_costs_the_copies_that_nobody_uses(cache: BlobCache, store: Store, tmp_path: Path) -> None:
    await use(cache, "a")
    async with cache.hold("b"):
        store.fault = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with pytest.raises(StoreUnavailable, match="No space left on device"):
            await use(cache, "c")
        (left,) = copies(tmp_path)
        assert left.read_bytes()[:1] == b"b"


async def test_a_copy_that_nobody_has_used_for_a_while_is_dropped(
    cache: BlobCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob_cache, "IDLE_SECONDS", 0.05)
    async with cache.hold("a") as path:
        await use(cache, "b")
        await until(lambda: copies(tmp_path) == [path])
    await until(lambda: copies(tmp_path) == [])


async def test_an_erased_blobs_copy_goes_at_once(cache: BlobCache, store: Store, tmp_path: Path) -> None:
    async with cache.hold("a"):
        cache.forget("a")
        cache.forget("b")
        assert copies(tmp_path) == []
        await use(cache, "a")
    assert store.asked == ["a", "a"]
    assert len(copies(tmp_path)) == 1


async def test_copies_of_a_predecessor_are_not_trusted(tmp_path: Path, store: Store) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "old").touch()

    BlobCache(tmp_path / "cache", SIZE, store.fetch)

    assert copies(tmp_path) == []
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


async def test_closing_breaks_off_downloads_and_leaves_nothing(cache: BlobCache, store: Store, tmp_path: Path) -> None:
    await use(cache, "a")
    store.gate.clear()
    reader = asyncio.create_task(use(cache, "b"))
    await until(lambda: store.asked == ["a", "b"])

    await cache.close()

    with pytest.raises(asyncio.CancelledError):
        await reader
    assert copies(tmp_path) == []
