"""The blob store of several gateways: objects in a bucket of S3, Google Cloud Storage or Azure."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Self

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import ObjectStore, from_url

from app.errors import StartError, StoreUnavailable
from app.journal.blob_cache import BlobCache
from app.journal.blobs import LAYOUT, LIST_BATCH, RETRY_SECONDS, checked_key, file_is_gone, is_blob_key
from app.settings import MIB, Settings
from app.telemetry.logs import get_logger

PART_BYTES = 8 * MIB
"""Of a multipart upload. S3 takes 10,000 parts, which is more than an upload can have by default."""
CONCURRENT_PARTS = 2
CONCURRENT_UPLOADS = 8
"""With the two above this bounds memory, to about 300 MiB."""
CHUNK_BYTES = MIB
"""Of a download, between the network and the disk."""
CHECK_SECONDS = 10
"""How long a start waits for the store's answer."""
DELETE_SECONDS = 10
"""How long a user waits for an erasure that a sweep makes up for."""
MAX_BACKOFF_SECONDS = 5
MAX_RETRIES = 10_000
"""Of one request: time is what bounds them."""
LINGER_SECONDS = 0.2
"""After the last call obstore's threads still let go of Python objects; an interpreter that ends meanwhile aborts."""

_logger = get_logger("blobs")


class ObjectBlobs:
    """Blobs as objects, named by their keys; pages read them from copies in `cache_dir`.

    A request that fails is repeated by obstore, a download from where it broke off. `blob_seconds` bounds each call.
    """

    def __init__(self, store: ObjectStore, cache_dir: Path, cache_bytes: int, blob_seconds: float) -> None:
        """Empty `cache_dir`; raises `StartError`."""
        self._store = store
        self._seconds = blob_seconds
        self._uploads = asyncio.Semaphore(CONCURRENT_UPLOADS)
        try:
            self._cache = BlobCache(cache_dir, cache_bytes, self._download)
        except OSError as error:
            raise StartError(f"the blob cache {cache_dir} can't be used: {error.strerror}") from error

    @classmethod
    async def open(cls, url: str, settings: Settings) -> Self:
        """The store at `url`, with what obstore reads from the environment.

        Raises `StartError`: the URL can't be read, the bucket is missing, refuses the credentials or can't be reached.
        """
        try:
            await _look_into(_connect(url, CHECK_SECONDS, max_retries=2))
            store = _connect(url, settings.blob_seconds, max_retries=MAX_RETRIES)
        except (BaseError, OSError, ValueError) as error:
            await asyncio.sleep(LINGER_SECONDS)
            raise StartError(f"the blob store can't be used: {_summary(error)}") from error
        return cls(store, settings.cache_dir, settings.blob_cache_bytes, settings.blob_seconds)

    async def publish(self, spool: Path, key: str) -> None:
        path = checked_key(key)
        async with _bounded("the file can't be stored", self._seconds), self._uploads:
            await obstore.put_async(self._store, path, spool, chunk_size=PART_BYTES, max_concurrency=CONCURRENT_PARTS)
            spool.unlink(missing_ok=True)

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        return self._cache.hold(checked_key(key))

    async def _download(self, key: str, path: Path) -> None:
        async with _bounded("the file can't be fetched", self._seconds):
            try:
                found = await obstore.get_async(self._store, key)
            except FileNotFoundError:
                raise file_is_gone() from None
            with await asyncio.to_thread(path.open, "xb") as file:
                async for chunk in found.stream(CHUNK_BYTES):
                    await asyncio.to_thread(file.write, chunk)

    async def delete(self, key: str) -> None:
        path = checked_key(key)
        self._cache.forget(key)
        async with _bounded("the file can't be erased", DELETE_SECONDS):
            with suppress(FileNotFoundError):
                await obstore.delete_async(self._store, path)

    async def key_batches(self) -> AsyncIterator[list[str]]:
        objects = obstore.list(self._store, LAYOUT, chunk_size=LIST_BATCH)
        while True:
            async with _bounded("the files can't be listed", self._seconds):
                batch = await anext(objects, None)
            if batch is None:
                return
            yield [item["path"] for item in batch if is_blob_key(item["path"])]

    async def close(self) -> None:
        await self._cache.close()
        await asyncio.sleep(LINGER_SECONDS)


def _connect(url: str, retry_seconds: float, max_retries: int) -> ObjectStore:
    # Without client options of ours: any of them would make obstore ignore those of the environment.
    return from_url(
        url,
        retry_config={
            "max_retries": max_retries,
            "retry_timeout": timedelta(seconds=retry_seconds),
            "backoff": {"max_backoff": timedelta(seconds=MAX_BACKOFF_SECONDS)},
        },
    )


async def _look_into(store: ObjectStore) -> None:
    async with asyncio.timeout(CHECK_SECONDS):
        async for _ in obstore.list(store, LAYOUT, chunk_size=1):
            return


@asynccontextmanager
async def _bounded(task: str, seconds: float) -> AsyncIterator[None]:
    """Turn a fault, and no end within `seconds`, into `StoreUnavailable`.

    Its detail gives the reason but no path, key or host; the log says more.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except (BaseError, OSError) as error:
        _logger.warning("object store failed", task=task, fault=_summary(error))
        raise StoreUnavailable(f"{task}: {_reason(error)}", retry_after=RETRY_SECONDS) from error


def _reason(error: BaseError | OSError) -> str:
    match error:
        case PermissionDeniedError() | UnauthenticatedError():
            return "the object store refuses access"
        case TimeoutError():
            return "the object store does not answer in time"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return "the object store fails"


def _summary(error: BaseError | OSError | ValueError) -> str:
    """What obstore says in its first line, without the query of an address (it may be signed) and the store's XML."""
    line = next(iter(str(error).splitlines()), "")
    return re.sub(r"\?\S*|:? *<.*", "", line) or type(error).__name__
