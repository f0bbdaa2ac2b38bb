"""Local copies of blobs from an object store."""

import asyncio
import errno
import shutil
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import StoreUnavailable

IDLE_SECONDS = 600
"""A copy that nobody has used for so long is dropped: its document may have been erased at another gateway."""

Fetch = Callable[[str, Path], Awaitable[None]]
"""Writes the blob of a key to a new file at a path."""


@dataclass(eq=False)
class _Copy:
    key: str
    path: Path
    download: "asyncio.Task[None]" = field(init=False)
    pins: int = 0
    bytes: int = 0
    expiry: asyncio.TimerHandle | None = None


class BlobCache:
    """One copy and one download a blob, however many ask for it. Copies in use stay; of the others those that have not
    been used for longest are dropped above `limit_bytes`.
    """

    def __init__(self, folder: Path, limit_bytes: int, fetch: Fetch) -> None:
        """Make `folder`, empty, readable by its owner only; raises `OSError`."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._fetch = fetch
        self._copies: dict[str, _Copy] = {}
        """In the order of their last use."""
        self._bytes = 0

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[Path]:
        """The copy, which stays as long as the context. What the download raises, all that wait for it get."""
        copy = self._pin(key)
        try:
            await asyncio.shield(copy.download)
            yield copy.path
        finally:
            self._unpin(copy)

    def forget(self, key: str) -> None:
        """Drop the copy, though it is used: its document is erased."""
        if copy := self._copies.get(key):
            self._drop(copy)

    async def close(self) -> None:
        """Break off downloads and drop all copies."""
        copies = list(self._copies.values())
        for copy in copies:
            copy.download.cancel()
            self._drop(copy)
        await asyncio.gather(*(copy.download for copy in copies), return_exceptions=True)

    def _pin(self, key: str) -> _Copy:
        copy = self._copies.pop(key, None) or self._new_copy(key)
        self._copies[key] = copy
        copy.pins += 1
        if copy.expiry is not None:
            copy.expiry.cancel()
        return copy

    def _unpin(self, copy: _Copy) -> None:
        copy.pins -= 1
        if copy.pins:
            return
        if copy.download.done() and self._copies.get(copy.key) is copy:
            copy.expiry = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._drop, copy)
            self._trim(self._limit_bytes)
        else:  # nobody waits for it any more, or it was dropped while it was used
            copy.download.cancel()
            self._drop(copy)

    def _new_copy(self, key: str) -> _Copy:
        # No name is used twice: a download that was broken off may still write to its file.
        copy = _Copy(key, self._folder / uuid.uuid4().hex)
        copy.download = asyncio.create_task(self._download(copy), name=f"download {key}")
        return copy

    async def _download(self, copy: _Copy) -> None:
        try:
            await self._fetch(copy.key, copy.path)
            copy.bytes = copy.path.stat().st_size
        except BaseException as error:
            self._drop(copy)
            if _is_full_disk(error):
                self._trim(0)  # so that the next try finds room
            raise
        if self._copies.get(copy.key) is copy:
            self._bytes += copy.bytes
            self._trim(self._limit_bytes)

    def _trim(self, limit_bytes: int) -> None:
        if self._bytes <= limit_bytes:
            return
        for copy in [copy for copy in self._copies.values() if not copy.pins]:
            self._drop(copy)
            if self._bytes <= limit_bytes:
                return

    def _drop(self, copy: _Copy) -> None:
        if self._copies.get(copy.key) is copy:
            del self._copies[copy.key]
            self._bytes -= copy.bytes
        if copy.expiry is not None:
            copy.expiry.cancel()
        copy.path.unlink(missing_ok=True)


def _is_full_disk(error: BaseException) -> bool:
    return (
        isinstance(error, StoreUnavailable)
        and isinstance(error.__cause__, OSError)
        and error.__cause__.errno == errno.ENOSPC
    )
