"""A store that is locked or full for a while, under load: clear errors, nothing lost, and it goes on by itself."""

import asyncio
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.pdfs import numbered_pdf
from tests.standins import StandIn
from tests.system.gateway import Event, Gateway, running_gateway
from tests.waiting import until

PAGES = 12
FULL_DISK_BYTES = 8 * 1024 * 1024
ROOM_LEFT_BYTES = 16 * 1024
LARGE_PDF = numbered_pdf(1000)
"""More than `ROOM_LEFT_BYTES`."""


@asynccontextmanager
async def under_load(data_dir: Path) -> AsyncIterator[tuple[Gateway, StandIn, "asyncio.Task[list[Event]]"]]:
    """A gateway that reads a document, and the client that follows it."""
    environment = {"PAGEFLEET_ORPHAN_SECONDS": "5", "PAGEFLEET_SWEEP_INTERVAL_SECONDS": "0.5"}
    async with (
        StandIn(slots=2, seconds=0.2) as replica,
        running_gateway(data_dir, [replica.url], environment) as gateway,
    ):
        document = await gateway.post(numbered_pdf(PAGES))
        stream = asyncio.create_task(collect(gateway, document["id"]))
        await until(lambda: len(replica.calls) >= 3)
        yield gateway, replica, stream


async def collect(gateway: Gateway, document_id: str) -> list[Event]:
    return [event async for event in gateway.follow(document_id)]


async def upload(gateway: Gateway, pdf: bytes) -> httpx.Response:
    return await gateway.client.post("/documents", files={"file": ("test.pdf", pdf, "application/pdf")})


def assert_unavailable(response: httpx.Response, reason: str) -> None:
    problem = response.json()
    assert (response.status_code, problem["code"]) == (503, "store_unavailable"), problem
    assert int(response.headers["Retry-After"]) > 0
    assert reason in problem["detail"]


async def assert_whole(stream: "asyncio.Task[list[Event]]", replica: StandIn) -> None:
    """The stream that was open all the time had every page once, and no page was read twice for it."""
    events = await stream
    assert [event.data["seq"] for event in events] == list(range(1, PAGES + 3))
    assert Counter(event.page for event in events if event.page) == Counter(range(1, PAGES + 1))
    assert events[-1].data["document"]["state"] == "succeeded"
    assert len(replica.calls) == PAGES


async def assert_goes_on(gateway: Gateway) -> None:
    """Uploads are taken again; there is no half document of the one that was refused, and soon none of its bytes."""
    document = await gateway.post(LARGE_PDF, pages="1")
    assert (await gateway.ended(document["id"]))["state"] == "succeeded"
    listed = (await gateway.client.get("/documents")).json()["documents"]
    assert len(listed) == 2
    await until(lambda: len(files(gateway.data_dir / "blobs")) == 2)
    assert files(gateway.data_dir / "spool") == []


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another program has the database for itself."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


async def test_a_locked_database_delays_pages_and_refuses_uploads(tmp_path: Path) -> None:
    async with under_load(tmp_path) as (gateway, replica, stream):
        with locked(tmp_path / "pagefleet.sqlite3"):
            refused = await upload(gateway, LARGE_PDF)
            document = (await gateway.client.get("/documents")).json()["documents"][0]
        assert_unavailable(refused, "locked")
        assert document["state"] == "running"
        await assert_whole(stream, replica)
        await assert_goes_on(gateway)


@contextmanager
def disk(path: Path) -> Iterator[Path]:
    """A file system of its own in memory; skips the test where mounting isn't allowed."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={FULL_DISK_BYTES}", "tmpfs", str(path)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("NO FULL DISK WAS TESTED: mounting a file system needs root on Linux")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Next to no room is left."""
    filler = disk / "filler"
    while not _filled(filler, shutil.disk_usage(disk).free - ROOM_LEFT_BYTES):
        pass
    yield
    filler.unlink()


def _filled(filler: Path, size: int) -> bool:
    """False where the gateway has taken some of the room since it was measured."""
    with filler.open("wb") as file, suppress(OSError):
        os.posix_fallocate(file.fileno(), 0, size)
        return True
    return False


async def test_a_full_disk_refuses_uploads_and_keeps_what_was_read(tmp_path: Path) -> None:
    with disk(tmp_path / "disk") as folder:
        async with under_load(folder / "data") as (gateway, replica, stream):
            with full(folder):
                refused = await upload(gateway, LARGE_PDF)
                await until(lambda: replica.present == 0)  # what was claimed is read, and waits to be written
            assert_unavailable(refused, "No space left on device")
            await assert_whole(stream, replica)
            await assert_goes_on(gateway)


@contextmanager
def small_files_only(pid: int) -> Iterator[None]:
    """The process can't let any file grow beyond `ROOM_LEFT_BYTES`, its database neither."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (ROOM_LEFT_BYTES, before[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of other processes are Linux's")
async def test_a_database_that_can_not_grow_delays_pages_and_loses_none(tmp_path: Path) -> None:
    async with under_load(tmp_path) as (gateway, replica, stream):
        with small_files_only(gateway.process.pid):
            refused = await upload(gateway, numbered_pdf(1))
            await until(lambda: replica.present == 0)
        assert_unavailable(refused, "the database can't be used")
        await assert_whole(stream, replica)
        await assert_goes_on(gateway)
