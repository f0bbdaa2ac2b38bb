"""Uploaded bytes: the blob store, and the folder that is one."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from app.errors import NotFound, StoreUnavailable

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_RETRY_SECONDS = 10
"""When to try again: a full disk takes a human or a sweep, neither is faster."""
_KEY = re.compile(f"v1/{_PART}/{_PART}/source")


def blob_key(tenant: str, document_id: str) -> str:
    """Key of a document's uploaded file; raises `ValueError` where a part could not be a file's name everywhere."""
    return _checked(f"v1/{tenant}/{document_id}/source")


def _checked(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise ValueError(f"{key!r} is no blob key")
    return key


@contextmanager
def store_faults(task: str) -> Iterator[None]:
    """Turn an `OSError` into `StoreUnavailable`, whose detail gives the reason but no path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreUnavailable(f"{task}: {reason}", retry_after=_RETRY_SECONDS) from error


class Blobs(Protocol):
    """A store of files by key. All methods raise `StoreUnavailable`, and `ValueError` for what is no key."""

    async def publish(self, spool: Path, key: str) -> None:
        """Move the file at `spool` into the store; when this returns it survives a power cut."""

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        """A file with the blob's bytes, which stays as long as the context; raises `NotFound` if the blob is gone."""

    async def delete(self, key: str) -> None:
        """Erase the blob; one that does not exist is no fault."""

    async def keys(self) -> list[str]:
        """Keys of all blobs, in order."""


class FolderBlobs:
    """Blobs as files below `root`, named by their keys. Spooled files must lie on the same file system."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def publish(self, spool: Path, key: str) -> None:
        path = self._path(key)
        with store_faults("the file can't be stored"):
            await asyncio.to_thread(self._publish, spool, path)

    def _publish(self, spool: Path, path: Path) -> None:
        _fsync(spool)
        path.parent.mkdir(parents=True, exist_ok=True)
        spool.replace(path)
        # Every level that may be new: another upload may have made one and not have synced it yet.
        for folder in path.parents:
            _fsync(folder)
            if folder == self._root.parent:
                break

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        path = self._path(key)
        if not path.is_file():
            raise NotFound("the uploaded file is gone")
        yield path

    async def delete(self, key: str) -> None:
        path = self._path(key)
        with store_faults("the file can't be erased"):
            await asyncio.to_thread(path.unlink, missing_ok=True)
        # A folder that can't go (not there, or kept by a reader on NFS) holds no bytes. The tenant's stays in any case:
        # another document may be on its way into it.
        with suppress(OSError):
            path.parent.rmdir()

    async def keys(self) -> list[str]:
        with store_faults("the files can't be listed"):
            return await asyncio.to_thread(self._keys)

    def _keys(self) -> list[str]:
        return sorted(path.relative_to(self._root).as_posix() for path in self._root.glob("v1/*/*/source"))

    def _path(self, key: str) -> Path:
        return self._root / _checked(key)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
