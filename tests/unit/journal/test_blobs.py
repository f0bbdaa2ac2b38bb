"""The folder as a blob store."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from app.errors import NotFound, StoreUnavailable
from app.journal.blobs import FolderBlobs, blob_key, discard, document_id_of
from tests.blobs import keys_of

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
    assert await keys_of(blobs) == [KEY]
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

    assert await keys_of(blobs) == []
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

    assert await keys_of(blobs) == ["v1/default/0199/source"]


async def test_an_empty_store_has_no_keys(blobs: FolderBlobs) -> None:
    assert await keys_of(blobs) == []


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


@pytest.fixture
def other_file_system(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the spool lie on one."""
    rename = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if path == spool:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)


@pytest.mark.usefixtures("other_file_system")
async def test_a_file_from_another_file_system_is_moved_too(blobs: FolderBlobs, spool: Path) -> None:
    await blobs.publish(spool, KEY)

    assert not spool.exists()
    async with blobs.local(KEY) as path:
        assert path.read_bytes() == b"%PDF-1.7"
        assert path.stat().st_mode & 0o077 == 0
        assert [file.name for file in path.parent.iterdir()] == ["source"]


@pytest.mark.usefixtures("other_file_system")
async def test_a_disk_that_is_full_half_way_leaves_nothing_half(
    blobs: FolderBlobs, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copyfile(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:4])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfile", copyfile)

    with pytest.raises(StoreUnavailable, match="the file can't be stored: No space left on device"):
        await blobs.publish(spool, KEY)

    assert await keys_of(blobs) == []
    assert spool.exists()


async def test_what_a_killed_gateway_left_of_a_blob_is_listed_and_goes_with_it(
    blobs: FolderBlobs, tmp_path: Path
) -> None:
    folder = tmp_path / "blobs" / KEY.removesuffix("/source")
    folder.mkdir(parents=True)
    assert await keys_of(blobs) == [KEY]

    (folder / "source.part").touch()
    assert await keys_of(blobs) == [KEY]

    await blobs.delete(KEY)
    assert await keys_of(blobs) == []
    assert not folder.exists()


async def test_what_is_no_blob_is_neither_listed_nor_in_the_way(blobs: FolderBlobs, tmp_path: Path) -> None:
    (tmp_path / "blobs" / "v1" / "lost+found").mkdir(parents=True)
    (tmp_path / "blobs" / "v1" / "default" / ".snapshot").mkdir(parents=True)

    assert await keys_of(blobs) == []


async def test_a_folder_that_is_not_mounted_is_no_proof_that_a_file_is_gone(blobs: FolderBlobs) -> None:
    with pytest.raises(StoreUnavailable):
        async with blobs.local(KEY):
            pass


async def test_bytes_that_can_not_be_discarded_now_are_left_to_a_sweep(
    blobs: FolderBlobs, spool: Path, tmp_path: Path
) -> None:
    await blobs.publish(spool, KEY)
    (tmp_path / "blobs" / KEY).unlink()
    (tmp_path / "blobs" / KEY).mkdir()

    await discard(blobs, KEY)

    assert await keys_of(blobs) == [KEY]


def test_a_key_names_its_document() -> None:
    assert document_id_of(KEY) == "0198"
    with pytest.raises(ValueError, match="no blob key"):
        document_id_of("0198")
