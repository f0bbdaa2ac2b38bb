"""A file that is being received."""

import asyncio
import hashlib
import os
import uuid
from pathlib import Path

from app.errors import FileTooLarge
from app.intake.file_type import HEAD_BYTES
from app.journal.blobs import store_faults

SUFFIX = ".part"
BATCH_BYTES = 256 * 1024
"""Bytes gathered before a thread writes and hashes them: the hop costs little next to that, and memory stays flat."""


class Spool:
    """One uploaded file on its way to the blob store, hashed as it is written.

    No file is open between two batches, so an upload that is cancelled while a thread writes may be discarded at once.
    """

    def __init__(self, folder: Path, filename: str, limit_bytes: int) -> None:
        """Create the file, empty, in `folder`; raises `StoreUnavailable`."""
        self.filename = filename
        self.path = folder / f"{uuid.uuid4()}{SUFFIX}"
        self.bytes = 0
        self.head = b""
        """The first `HEAD_BYTES` of the file."""
        self._limit_bytes = limit_bytes
        self._pending = bytearray()
        self._digest = hashlib.sha256()
        with store_faults("the upload can't be kept"):
            folder.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600, exist_ok=False)

    @property
    def sha256(self) -> str:
        """Hash of the whole file in hexadecimal, once it is closed."""
        return self._digest.hexdigest()

    async def write(self, data: bytes) -> None:
        """Append `data`; raises `FileTooLarge` as soon as the limit is passed, and `StoreUnavailable`."""
        self.bytes += len(data)
        if self.bytes > self._limit_bytes:
            raise file_too_large(self._limit_bytes)
        self.head += data[: HEAD_BYTES - len(self.head)]
        self._pending += data
        if len(self._pending) >= BATCH_BYTES:
            await self._flush()

    async def close(self) -> None:
        """Write what is left. The blob store makes it durable, so that a refused file costs no sync."""
        await self._flush()

    def discard(self) -> None:
        """Remove the file, unless it was published."""
        self.path.unlink(missing_ok=True)

    async def _flush(self) -> None:
        batch, self._pending = self._pending, bytearray()
        with store_faults("the upload can't be kept"):
            await asyncio.to_thread(self._append, batch)

    def _append(self, batch: bytearray) -> None:
        with self.path.open("r+b") as file:  # never creates: a late batch must not bring back a discarded file
            file.seek(0, os.SEEK_END)
            file.write(batch)
        self._digest.update(batch)


def file_too_large(limit_bytes: int) -> FileTooLarge:
    return FileTooLarge(f"a file may have {limit_bytes} bytes at most", limit=limit_bytes)


def sweep(folder: Path) -> int:
    """Remove what a gateway that died left in `folder`; gives the number of files. Only before uploads are taken."""
    leftovers = list(folder.glob(f"*{SUFFIX}"))
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)
