"""Uploaded bytes: the blob store, and the folder that is one."""

import asyncio
import errno
import os
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from app.errors import NotFound, StoreUnavailable
from app.telemetry.logs import get_logger

LAYOUT = "v1"
"""First part of every key."""
LIST_BATCH = 1000
"""Keys listed at a time: what S3 gives in one answer."""
RETRY_SECONDS = 10
"""When to try again: a full disk takes a human or a sweep, neither is faster."""
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_KEY = re.compile(f"{LAYOUT}/{_PART}/({_PART})/source")

_logger = get_logger("blobs")


def blob_key(tenant: str, document_id: str) -> str:
    """Key of a document's uploaded file; raises `ValueError` where a part could not be a file's name everywhere."""
    return checked_key(f"{LAYOUT}/{tenant}/{document_id}/source")


def is_blob_key(name: str) -> bool:
    return _KEY.fullmatch(name) is not None


def checked_key(key: str) -> str:
    """`key` itself; raises `ValueError` if it is none."""
    if not is_blob_key(key):
        raise ValueError(f"{key!r} is no blob key")
    return key


def document_id_of(key: str) -> str:
    """The document whose file the key names; raises `ValueError`."""
    return checked_key(key).split("/")[2]


def file_is_gone() -> NotFound:
    return NotFound("the uploaded file is gone")


@contextmanager
def store_faults(task: str) -> Iterator[None]:
    """Turn an `OSError` into `StoreUnavailable`, whose detail gives the reason but no path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreUnavailable(f"{task}: {reason}", retry_after=RETRY_SECONDS) from error


class Blobs(Protocol):
    """A store of files by key. All methods raise `StoreUnavailable`, and `ValueError` for what is no key."""

    async def publish(self, spool: Path, key: str) -> None:
        """Move the file at `spool` into the store; when this returns it survives a power cut."""

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        """A file with the blob's bytes, which stays as long as the context; raises `NotFound` if the blob is gone."""

    async def delete(self, key: str) -> None:
        """Erase the blob and what a broken-off `publish` left of it; one that does not exist is no fault."""

    def key_batches(self) -> AsyncIterator[list[str]]:
        """Keys of all blobs and of what is left of them, in any order, `LIST_BATCH` at a time."""

    async def close(self) -> None:
        """Let go of what the store holds on this machine."""


async def discard(blobs: Blobs, key: str) -> None:
    """Erase bytes that have no row. Where the store is away they stay, as an orphan that a later sweep finds."""
    try:
        await blobs.delete(key)
    except StoreUnavailable as error:
        _logger.warning("bytes without a document stay for a later sweep", key=key, detail=error.detail)


class FolderBlobs:
    """Blobs as files below `root`, named by their keys: one folder a document."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def publish(self, spool: Path, key: str) -> None:
        path = self._path(key)
        with store_faults("the file can't be stored"):
            await asyncio.to_thread(self._publish, spool, path)

    def _publish(self, spool: Path, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _move(spool, path)
            # Every level that may be new: another upload may have made one and not have synced it yet.
            for folder in path.parents:
                _fsync(folder)
                if folder == self._root.parent:
                    break
        except OSError:
            with suppress(OSError):
                _erase(path)
            raise

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        path = self._path(key)
        with store_faults("the file can't be read"):
            await asyncio.to_thread(self._look_for, path)
        yield path

    def _look_for(self, path: Path) -> None:
        if path.is_file():
            return
        if not (self._root / LAYOUT).is_dir():  # as when the file system is not mounted; no reason to give a page up
            raise StoreUnavailable("the file can't be read: the blob folder is not there", retry_after=RETRY_SECONDS)
        raise file_is_gone()

    async def delete(self, key: str) -> None:
        path = self._path(key)
        with store_faults("the file can't be erased"):
            await asyncio.to_thread(_erase, path)

    async def key_batches(self) -> AsyncIterator[list[str]]:
        with store_faults("the files can't be listed"):
            keys = await asyncio.to_thread(self._keys)
        for start in range(0, len(keys), LIST_BATCH):
            yield keys[start : start + LIST_BATCH]

    def _keys(self) -> list[str]:
        """Of all documents' folders, whatever is in them."""
        folders = (path.relative_to(self._root).as_posix() for path in self._root.glob(f"{LAYOUT}/*/*"))
        return [key for folder in folders if is_blob_key(key := f"{folder}/source")]

    async def close(self) -> None:
        """Nothing is held."""

    def _path(self, key: str) -> Path:
        return self._root / checked_key(key)


def _move(spool: Path, path: Path) -> None:
    """Rename, or copy beside and rename where the spool lies on another file system; the file's bytes are synced."""
    _fsync(spool)
    try:
        spool.replace(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy = _copy_of(path)
        shutil.copyfile(spool, copy)
        copy.chmod(0o600)
        _fsync(copy)
        copy.replace(path)
        spool.unlink()


def _erase(path: Path) -> None:
    path.unlink(missing_ok=True)
    _copy_of(path).unlink(missing_ok=True)
    # A folder that can't go (not there, or kept by a reader on NFS) holds no bytes. The tenant's stays in any case:
    # another document may be on its way into it.
    with suppress(OSError):
        path.parent.rmdir()


def _copy_of(path: Path) -> Path:
    """What the file at `path` is called until all its bytes are there."""
    return path.with_name(f"{path.name}.part")


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
