"""The body of a request as it comes."""

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request

from app.errors import UploadTimeout


async def body_chunks(request: Request, idle_seconds: float) -> AsyncIterator[bytes]:
    """Raises `UploadTimeout` after a silence of `idle_seconds`, and `ClientDisconnect`."""
    chunks = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(idle_seconds):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise UploadTimeout(f"no byte of the upload has come for {idle_seconds:g} s") from None
        yield chunk
