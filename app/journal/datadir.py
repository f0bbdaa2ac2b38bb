"""The lock on the data directory: one gateway at a time."""

import fcntl
import os
from pathlib import Path
from typing import Self

from app.errors import StartError


class DataDir:
    """A locked data directory; the kernel drops the lock with the process, however it ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def lock(cls, path: Path) -> Self:
        """Make `path` where it is missing, readable by its owner only, and lock it; raises `StartError`."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartError(f"the data directory {path} can't be used: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise StartError(f"another gateway uses the data directory {path}") from error
        return cls(path, descriptor)

    def unlock(self) -> None:
        os.close(self._descriptor)
