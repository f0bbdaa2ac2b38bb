"""Objects in a bucket as a blob store, with the faults that such a store has."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.errors import NotFound, StartError, StoreUnavailable
from app.journal import object_blobs
from app.journal.blobs import Blobs, blob_key
from app.journal.object_blobs import ObjectBlobs
from app.settings import Settings
from tests.blobs import keys_of
from tests.unit.journal.s3_server import Bucket, Fault, running_bucket

KEY = blob_key("default", "0198")
URL = "s3://books/pre/fix"
DATA = bytes(range(256)) * 4096
SECONDS = 10.0
"""Time for a call that will succeed."""
SHORT_SECONDS = 0.3
"""Time for one that won't."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_blobs, "LINGER_SECONDS", 0.01)


@pytest.fixture
async def bucket(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bucket]:
    async with running_bucket(monkeypatch) as bucket:
        yield bucket


async def opened(data_dir: Path, blob_seconds: float = SECONDS) -> ObjectBlobs:
    return await ObjectBlobs.open(URL, Settings(data_dir=data_dir, blob_seconds=blob_seconds))


@pytest.fixture
async def blobs(bucket: Bucket, tmp_path: Path) -> AsyncIterator[ObjectBlobs]:
    blobs = await opened(tmp_path)
    bucket.requests.clear()
    yield blobs
    await blobs.close()


@pytest.fixture
async def hurried(bucket: Bucket, tmp_path: Path) -> AsyncIterator[ObjectBlobs]:
    blobs = await opened(tmp_path, SHORT_SECONDS)
    bucket.requests.clear()
    yield blobs
    await blobs.close()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    path = tmp_path / "a.part"
    path.write_bytes(DATA)
    return path


async def read(blobs: Blobs, key: str = KEY) -> bytes:
    async with blobs.local(key) as path:
        return path.read_bytes()


async def test_a_published_file_is_an_object_below_the_prefix(bucket: Bucket, blobs: ObjectBlobs, spool: Path) -> None:
    await blobs.publish(spool, KEY)

    assert bucket.objects == {f"pre/fix/{KEY}": DATA}
    assert not spool.exists()
    assert await read(blobs) == DATA


async def test_all_pages_of_a_document_share_one_download(bucket: Bucket, blobs: ObjectBlobs, spool: Path) -> None:
    await blobs.publish(spool, KEY)
    bucket.requests.clear()

    await asyncio.gather(*(read(blobs) for _ in range(10)))
    await read(blobs)

    assert bucket.requests == [f"GET /books/pre/fix/{KEY}"]


async def test_keys_are_listed_in_batches_without_what_others_keep_there(bucket: Bucket, blobs: ObjectBlobs) -> None:
    keys = [blob_key("default", str(number)) for number in range(5)]
    bucket.objects = {f"pre/fix/{name}": b"" for name in (*keys, "v1/notes.txt", "v1/a/b/source/c")}
    bucket.objects["other/v1/default/9/source"] = b""

    assert await keys_of(blobs) == keys


async def test_deleting_erases_the_object_and_its_copy_and_may_be_repeated(
    bucket: Bucket, blobs: ObjectBlobs, spool: Path, tmp_path: Path
) -> None:
    await blobs.publish(spool, KEY)
    await read(blobs)

    await blobs.delete(KEY)
    await blobs.delete(KEY)

    assert bucket.objects == {}
    assert list((tmp_path / "cache").iterdir()) == []
    with pytest.raises(NotFound, match="the uploaded file is gone"):
        await read(blobs)


@pytest.mark.parametrize("fault", [Fault.BROKEN, Fault.CUT], ids=["500", "cut"])
async def test_a_passing_fault_is_repaired_by_a_repeat(
    bucket: Bucket, blobs: ObjectBlobs, spool: Path, fault: Fault
) -> None:
    bucket.plan.extend([fault, fault])
    await blobs.publish(spool, KEY)
    bucket.plan.extend([fault, fault])
    assert await read(blobs) == DATA
    bucket.plan.extend([Fault.BROKEN])
    assert await keys_of(blobs) == [KEY]
    bucket.plan.extend([Fault.BROKEN])
    await blobs.delete(KEY)
    assert bucket.objects == {}


async def test_a_silent_store_is_asked_again(
    bucket: Bucket, tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """obstore's own time limits come from the environment."""
    monkeypatch.setenv("AWS_TIMEOUT", "200ms")
    blobs = await opened(tmp_path)
    bucket.plan.append(Fault.HANG)
    await blobs.publish(spool, KEY)
    bucket.plan.append(Fault.HANG)
    assert await read(blobs) == DATA
    await blobs.close()


@pytest.mark.parametrize("fault", [Fault.BROKEN, Fault.HANG, Fault.REFUSED], ids=["500", "silent", "403"])
async def test_a_fault_that_stays_is_told_without_a_name_a_key_or_an_address(
    bucket: Bucket, hurried: ObjectBlobs, spool: Path, tmp_path: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_blobs, "DELETE_SECONDS", SHORT_SECONDS)
    bucket.always = fault
    told = []
    for call in (hurried.publish(spool, KEY), read(hurried), keys_of(hurried), hurried.delete(KEY)):
        with pytest.raises(StoreUnavailable) as caught:
            await call
        told.append(caught.value.detail)
        assert caught.value.problem()["retry_after"] > 0

    assert [detail.partition(": ")[0] for detail in told] == [
        "the file can't be stored",
        "the file can't be fetched",
        "the files can't be listed",
        "the file can't be erased",
    ]
    assert not [word for word in ("127.0.0.1", "0198", "books", "an-id", "Secret", str(tmp_path)) if word in str(told)]
    assert spool.exists()
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
async def test_a_cache_disk_that_is_full_is_told_as_such(
    blobs: ObjectBlobs, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await blobs.publish(spool, KEY)
    monkeypatch.setattr(Path, "open", lambda path, mode: os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb"))
    with pytest.raises(StoreUnavailable, match="the file can't be fetched: No space left on device"):
        await read(blobs)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(Fault.REFUSED, "403"), (Fault.NO_BUCKET, "404"), (Fault.BROKEN, "500")],
    ids=["refused", "no bucket", "broken"],
)
async def test_a_bucket_that_can_not_be_used_is_known_at_the_start(
    bucket: Bucket, tmp_path: Path, fault: Fault, reason: str
) -> None:
    bucket.always = fault
    with pytest.raises(StartError, match="the blob store can't be used") as caught:
        await opened(tmp_path)

    assert reason in caught.value.detail
    assert "Secret" not in caught.value.detail
    assert "?" not in caught.value.detail


async def test_what_is_no_key_is_never_asked_for(bucket: Bucket, blobs: ObjectBlobs, spool: Path) -> None:
    key = "v1/a/../../secret"
    for call in (blobs.publish(spool, key), read(blobs, key), blobs.delete(key)):
        with pytest.raises(ValueError, match="no blob key"):
            await call
    assert bucket.requests == []
