"""Bytes in the blob store that belong to no document."""

import time

from app.journal import Journal
from app.journal.blobs import Blobs, discard


class Orphans:
    """What an upload left that was cut off between its bytes and its row, and an erasure that the store did not do.

    An orphan is told by looking twice: bytes without a row at both looks. How far apart these are is measured on this
    process's own monotonic clock, so that neither a clock that jumps nor another machine's clock can make an upload in
    progress look old. Several gateways may look at the same store.
    """

    def __init__(self, journal: Journal, blobs: Blobs) -> None:
        self._journal = journal
        self._blobs = blobs
        self._first_seen: dict[str, float] = {}

    async def sweep(self, age_seconds: float) -> int:
        """Erase what had no row now and `age_seconds` ago; how many. Raises `StoreUnavailable`."""
        now = time.monotonic()
        seen: dict[str, float] = {}
        erased = 0
        async for keys in self._blobs.key_batches():
            for key in await self._journal.orphans(keys):
                seen[key] = self._first_seen.get(key, now)
                if now - seen[key] >= age_seconds:
                    await discard(self._blobs, key)
                    erased += 1
        self._first_seen = seen
        return erased
