"""The folder as a blob store."""

import os
from pathlib import Path

import pytest

from app.errors import NotFound, StoreUnavailable
from app.journal.blobs import FolderBlobs, blob_key

KEY = blob_key("default", "0198")


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs")


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    path = tmp_path / "a.part"
    path.write_bytes(b"%PDF-1.7")
    return path


async def test_a_published_file_is_moved_and_can_be_read_by_its_key(blobs: FolderBlobs, spool: Path) -> None:
    await blobs.publish(spool, KEY)

    assert KEY == "v1/default/0198/source"
    assert not spool.exists()
    assert await blobs.keys() == [KEY]
    async with blobs.local(KEY) as path:
        assert path.read_bytes() == b"%PDF-1.7"


async def test_the_bytes_and_every_folder_above_them_are_synced(
    blobs: FolderBlobs, spool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    file = spool.stat().st_ino

    await blobs.publish(spool, KEY)

    folders = [tmp_path / "blobs" / part for part in ("v1/default/0198", "v1/default", "v1", "", "..")]
    assert synced == [file, *(folder.stat().st_ino for folder in folders)]


async def test_deleting_leaves_nothing_and_may_be_repeated(blobs: FolderBlobs, spool: Path, tmp_path: Path) -> None:
    await blobs.publish(spool, KEY)

    await blobs.delete(KEY)
    await blobs.delete(KEY)

    assert await blobs.keys() == []
    assert list((tmp_path / "blobs" / "v1" / "default").iterdir()) == []
    with pytest.raises(NotFound):
        async with blobs.local(KEY):
            pass


async def test_deleting_one_document_leaves_the_others(blobs: FolderBlobs, spool: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.part"
    other.write_bytes(b"other")
    await blobs.publish(spool, KEY)
    await blobs.publish(other, blob_key("default", "0199"))

    await blobs.delete(KEY)

    assert await blobs.keys() == ["v1/default/0199/source"]


async def test_an_empty_store_has_no_keys(blobs: FolderBlobs) -> None:
    assert await blobs.keys() == []


async def test_a_store_that_cannot_be_written_says_why_and_names_no_path(
    blobs: FolderBlobs, spool: Path, tmp_path: Path
) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")

    with pytest.raises(StoreUnavailable) as caught:
        await blobs.publish(spool, KEY)

    assert str(tmp_path) not in caught.value.detail
    assert caught.value.detail == "the file can't be stored: Not a directory"
    assert caught.value.problem()["retry_after"] > 0


@pytest.mark.parametrize("tenant", ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a\0b", "ü", "a\n"])
def test_a_tenant_that_is_no_safe_path_part_gets_no_key(tenant: str) -> None:
    with pytest.raises(ValueError, match="no blob key"):
        blob_key(tenant, "0198")


@pytest.mark.parametrize(
    "key", ["/etc/passwd", "v1/a/../source", "v1/a/b/other", "v1/a/b/source/../../x", "v2/a/b/source"]
)
async def test_what_is_no_key_touches_no_file(blobs: FolderBlobs, spool: Path, key: str) -> None:
    with pytest.raises(ValueError, match="no blob key"):
        await blobs.publish(spool, key)
    with pytest.raises(ValueError, match="no blob key"):
        await blobs.delete(key)

    assert spool.exists()
