"""Files that are being received."""

import hashlib
from pathlib import Path

import pytest

from app.errors import FileTooLarge, StoreUnavailable
from app.intake.spool import BATCH_BYTES, Spool, sweep


@pytest.mark.parametrize("size", [0, 1, BATCH_BYTES - 1, BATCH_BYTES, 3 * BATCH_BYTES + 5])
async def test_the_file_holds_what_was_written_and_its_hash(tmp_path: Path, size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    spool = Spool(tmp_path / "spool", "a.pdf", limit_bytes=size)
    for start in range(0, size, 70_000):
        await spool.write(data[start : start + 70_000])
    await spool.close()

    assert spool.path.read_bytes() == data
    assert spool.bytes == size
    assert spool.head == data[:1024]
    assert spool.sha256 == hashlib.sha256(data).hexdigest()


async def test_the_head_is_gathered_from_small_writes(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a.pdf", limit_bytes=5000)
    for _ in range(5000):
        await spool.write(b"x")

    assert spool.head == b"x" * 1024


async def test_a_byte_over_the_limit_is_refused_at_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a.pdf", limit_bytes=10)
    await spool.write(b"x" * 10)

    with pytest.raises(FileTooLarge) as caught:
        await spool.write(b"x")

    assert caught.value.problem()["limit"] == 10


async def test_only_its_owner_may_read_a_spooled_file(tmp_path: Path) -> None:
    assert Spool(tmp_path, "a.pdf", limit_bytes=10).path.stat().st_mode & 0o077 == 0


async def test_a_batch_written_after_the_discard_fails_and_brings_nothing_back(tmp_path: Path) -> None:
    """A cancelled upload may leave a thread behind that writes later."""
    spool = Spool(tmp_path, "a.pdf", limit_bytes=BATCH_BYTES)
    spool.discard()

    with pytest.raises(StoreUnavailable, match="No such file"):
        await spool.write(b"x" * BATCH_BYTES)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
async def test_a_full_disk_is_a_fault_of_the_store_and_leaves_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "a.pdf", limit_bytes=10)
    spool.path.unlink()
    spool.path.symlink_to("/dev/full")
    await spool.write(b"x")

    with pytest.raises(StoreUnavailable, match="the upload can't be kept: No space left on device"):
        await spool.close()

    spool.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_spool_folder_that_cannot_be_made_is_a_fault_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "spool").touch()

    with pytest.raises(StoreUnavailable):
        Spool(tmp_path / "spool", "a.pdf", limit_bytes=10)


def test_sweeping_removes_leftover_parts_and_nothing_else(tmp_path: Path) -> None:
    Spool(tmp_path, "a.pdf", limit_bytes=10)
    Spool(tmp_path, "b.pdf", limit_bytes=10)
    (tmp_path / "notes.txt").touch()

    assert sweep(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert sweep(tmp_path / "not there") == 0
