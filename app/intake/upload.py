"""What intake needs of an HTTP request."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Upload:
    """The request of an upload; header values as the HTTP server gives them (bytes decoded as Latin-1)."""

    chunks: AsyncIterator[bytes]
    """The body; what it raises (a client that left, for one) ends the upload."""
    query: Mapping[str, str]
    content_type: str | None = None
    content_disposition: str | None = None
    content_length: int | None = None
    """None for a chunked body; only ever used to refuse early."""
    idempotency_key: str | None = None
    """Value of the `Idempotency-Key` header."""
