"""Values for tests of and with the blob stores."""

from app.journal.blobs import Blobs


async def keys_of(blobs: Blobs) -> list[str]:
    """All keys, in order."""
    return sorted([key async for batch in blobs.key_batches() for key in batch])
