"""The gateway's HTTP API as this command uses it; failures that pass are waited out."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import httpx
from httpx_sse import EventSource

from app.errors import StartError
from app.ocr.errors import KeyRefused, Refused, Unanswered
from app.ocr.patience import Contact, Patience

TIMEOUT = httpx.Timeout(60, connect=10, pool=None)
"""Seconds. Streams are never silent for so long: the gateway sends a heartbeat every 15 s."""
_LIMITS = httpx.Limits(max_connections=None)  # what is open at once is bounded by the window

Json = dict[str, Any]
"""A document, page or event in the shape of the API."""

Answer = TypeVar("Answer")


def connect(url: str, *, own: bool, api_key: str | None = None) -> httpx.AsyncClient:
    """A connection pool for the gateway at `url`; one of our own needs no key and is never spoken to through a proxy.

    Raises `StartError`.
    """
    headers = {"Authorization": f"Bearer {api_key}"} if api_key is not None and not own else {}
    try:
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT, limits=_LIMITS, trust_env=not own)
    except httpx.InvalidURL as error:
        raise StartError(f"{url} is no URL of a gateway: {error}") from None


class Client:
    """Every method raises `Refused` for what ends one file, `KeyRefused` and `ServerLost` for what ends all."""

    def __init__(self, http: httpx.AsyncClient, contact: Contact) -> None:
        self._http = http
        self._contact = contact

    async def check(self) -> None:
        """Raises `StartError` when there is no gateway, or it wants another key: neither shall be waited for."""
        try:
            async with self._response("GET", "/livez"):
                pass
        except (Refused, Unanswered) as error:
            raise StartError(f"there is no gateway at {self._http.base_url}: {error.detail}") from None
        try:
            async with self._response("GET", "/documents", params={"limit": "1"}):
                pass
        except KeyRefused as error:
            raise StartError(error.detail) from None
        except (Refused, Unanswered):
            pass  # it is there, and may be busy

    async def post(self, file: Path, options: dict[str, str]) -> Json:
        """Upload a file from disk, never held whole; the accepted document. Raises OSError if it can't be opened.

        An upload whose answer was lost is repeated, and makes no second document.
        """
        name = os.fsencode(file.name).decode(errors="replace")
        headers = {"Idempotency-Key": str(uuid4())}

        async def send() -> Json:
            with file.open("rb") as stream:
                form = {"files": {"file": (name, stream)}, "data": options}
                async with self._response("POST", "/documents", headers=headers, **form) as response:
                    return await _json(response)

        return await self._tried(send)

    async def events(self, document: Json, order: str) -> AsyncGenerator[Json, None]:
        """The document's events to its `end`, each once; a stream that breaks is taken up where it broke.

        `order`: `page` or `completed`.
        """
        patience = Patience(self._contact)
        headers = {"Accept": "text/event-stream"}
        while True:
            try:
                async with self._response(
                    "GET", self._link(document, "events"), params={"order": order}, headers=headers
                ) as response:
                    patience.answered()
                    async for event in EventSource(response).aiter_sse():
                        patience.progressed()
                        self._contact.heard()
                        headers["Last-Event-ID"] = event.id
                        data: Json = json.loads(event.data)
                        yield data
                        if data["event"] == "end":
                            return
                raise Unanswered("the stream ended before the document")
            except (Refused, Unanswered) as error:
                await asyncio.sleep(patience.seconds_after(error))

    async def save(self, document: Json, format: str, target: Path) -> None:
        """Stream the document's result into `target`; when this returns it is whole and on the disk."""

        async def receive() -> None:
            query = {"format": format}
            async with self._response("GET", self._link(document, "result"), params=query) as response:
                with target.open("wb") as stream:
                    async for chunk in response.aiter_bytes():
                        stream.write(chunk)
                    stream.flush()
                    os.fsync(stream.fileno())

        await self._tried(receive)

    async def delete(self, document: Json) -> None:
        async def send() -> None:
            async with self._response("DELETE", self._link(document, "self")):
                return

        await self._tried(send)

    def _link(self, document: Json, name: str) -> httpx.URL:
        """Links are absolute paths, with the prefix of an ingress that the base URL may have too."""
        return self._http.base_url.join(document["links"][name])

    async def _tried(self, request: Callable[[], Awaitable[Answer]]) -> Answer:
        patience = Patience(self._contact)
        while True:
            try:
                answer = await request()
            except (Refused, Unanswered) as error:
                await asyncio.sleep(patience.seconds_after(error))
            else:
                patience.answered()
                return answer

    @asynccontextmanager
    async def _response(self, method: str, url: str | httpx.URL, **request: Any) -> AsyncIterator[httpx.Response]:
        """A successful response with its body still to come.

        Raises `Refused`, `KeyRefused`, and `Unanswered`, that from its body too.
        """
        try:
            async with self._http.stream(method, url, **request) as response:
                if not response.is_success:
                    await response.aread()
                    raise self._refusal(response)
                yield response
        except httpx.RequestError as error:
            raise Unanswered(str(error) or type(error).__name__) from error

    def _refusal(self, response: httpx.Response) -> Refused | KeyRefused:
        refused = Refused.from_response(response)
        if refused.reason in ("unauthorized", "forbidden"):
            return KeyRefused.from_refusal(refused, sent="Authorization" in self._http.headers)
        return refused


async def _json(response: httpx.Response) -> Json:
    await response.aread()
    try:
        data: Json = response.json()
    except ValueError:
        raise Refused("no_gateway", "the answer is not JSON: this is no gateway") from None
    return data
