"""The HTTP client of one endpoint: streamed chat completions, with every fault as the attempt error that it means."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpcore
import httpx
import httpx_sse

from app.documents.text import clean_text
from app.errors import (
    AttemptAborted,
    AttemptError,
    LaneFault,
    LaneFull,
    LaneUnreachable,
    RankUnknown,
    RequestRefused,
)

CONNECT_SECONDS = 2.0
KEEPALIVE_SECONDS = 4.0
"""Idle life of a connection; below the 5 s after which uvicorn, and so vLLM, closes it."""
MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""A page's text has kilobytes; a replica that sends more than this has lost its way."""
MAX_TOKENS = 2**31 - 1
"""What a page can hold is far below; a count above it is no count."""
MAX_MESSAGE_CHARACTERS = 200
"""Of a replica's own error message, as shown to people."""
RETRY_AFTER_SECONDS = 1.0
"""Pause of a full lane that names none; an HTTP date counts as none."""
MAX_RETRY_AFTER_SECONDS = 60.0
RANK_HEADER = "X-data-parallel-rank"
"""Names the engine of a vLLM server that is to take the request; counted from 0 within the server."""
_RANK_PARAMETER = "data_parallel_rank"
"""What vLLM calls it when it refuses one that it does not have, with 400."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a replica answered; whether it is good, its profile says."""

    text: str
    """As it came: control characters are not removed."""
    finish_reason: str
    """`stop`, `length`, or another word of the replica's; never `abort`."""
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float
    """From the request's first byte to the answer's last."""
    model: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What an embedded OCR server says of the page beside its text, in the field `pagefleet`; unchecked."""


class _Transport(httpx.AsyncHTTPTransport):
    """Knows whether a request opened its connection, and makes up for two things that go wrong otherwise.

    A kept-alive connection reset before the first byte of a response says nothing about the server's health: it may
    have closed the idle connection just as the request left on it. The request is sent again.
    A request cancelled between its connection's opening and its first byte leaves that connection open and forgotten
    in httpcore's pool (1.0.9). It is closed.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        opened: list[httpcore.AsyncNetworkStream] = []

        async def trace(event: str, info: dict[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                opened.append(info["return_value"])

        request.extensions["trace"] = trace
        try:
            return await super().handle_async_request(request)
        except asyncio.CancelledError:
            for stream in opened:
                await stream.aclose()
            raise
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            if opened:
                raise
        return await super().handle_async_request(request)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A body sent part by part: the page's image is megabytes, and joining would copy it."""

    parts: Sequence[bytes]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part


@cache
def _tls() -> ssl.SSLContext:
    """The system's trust; one for all endpoints, for it takes tens of milliseconds to load."""
    return ssl.create_default_context()


def open_client(url: str, api_key: str | None) -> httpx.AsyncClient:
    """Client of an endpoint. No proxy and no limit on connections: lanes bound what is in flight."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEPALIVE_SECONDS)
    return httpx.AsyncClient(
        base_url=url,
        headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        transport=_Transport(verify=_tls(), trust_env=False, limits=limits),
        trust_env=False,
    )


async def complete(
    client: httpx.AsyncClient, body: Sequence[bytes], on_progress: Callable[[], None], rank: int | None = None
) -> Answer:
    """POST the JSON `body` (with `"stream": true`) to the engine `rank`, or any, and read the answer to its end.

    `on_progress` is called with each event. Comments don't count: a front end sends them while its engine hangs.
    Raises an `AttemptError`; cancelling closes the connection, which is how a replica learns that nobody waits.
    """
    started = time.monotonic()
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(sum(map(len, body))),
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",  # what compresses a stream on its way also holds it back
    }
    if rank is not None:
        headers[RANK_HEADER] = str(rank)
    try:
        async with client.stream("POST", "/v1/chat/completions", content=_Parts(body), headers=headers) as response:
            if response.status_code != 200:
                raise await _refusal(response)
            transcript = _Transcript()
            async for event in httpx_sse.EventSource(response).aiter_sse():
                on_progress()
                transcript.add(event.data)
                if response.num_bytes_downloaded > MAX_ANSWER_BYTES:
                    raise LaneFault("The replica's answer has no end.")
    except (httpx_sse.SSEError, httpx.DecodingError) as error:  # before its base class, TransportError
        raise LaneFault("The replica did not answer with an event stream.") from error
    except httpx.TransportError as error:
        raise LaneUnreachable(_describe(error)) from error
    return transcript.answer(time.monotonic() - started)


def _describe(error: httpx.TransportError) -> str:
    """In our own words: the library's text may hold addresses."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return "The replica can't be connected to."
    return "The connection to the replica broke before the end of its answer."


async def _refusal(response: httpx.Response) -> AttemptError:
    status = response.status_code
    if status in (429, 503):
        return LaneFull(f"The replica has no room ({status}).", retry_after=_retry_after(response))
    message = await _message(response)
    detail = f"The replica answered {status}: {message}"
    if status == 400 and RANK_HEADER in response.request.headers and message.startswith(_RANK_PARAMETER):
        return RankUnknown(detail)
    if 400 <= status < 500 and status != 408:
        return RequestRefused(detail)
    return LaneFault(detail)


def _retry_after(response: httpx.Response) -> float:
    value = response.headers.get("Retry-After", "")
    return min(MAX_RETRY_AFTER_SECONDS, float(value)) if value.isdecimal() else RETRY_AFTER_SECONDS


async def _message(response: httpx.Response) -> str:
    """The replica's own words, cut short; the status's phrase if it has none."""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > 64 * 1024:
            break
    try:
        message = _error_message(json.loads(body))
    except (ValueError, RecursionError):
        message = None
    return message or response.reason_phrase


def _error_message(body: Any) -> str | None:
    """`message` of an OpenAI error body, one line; None if this is none."""
    error = body.get("error") if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return clean_text(" ".join(str(message).split()))[:MAX_MESSAGE_CHARACTERS] if message else None


@dataclass(slots=True)
class _Transcript:
    """The answer as it comes in."""

    text: str = ""
    finish_reason: str | None = None
    model: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def add(self, data: str) -> None:
        """Take in one event's data. Raises `LaneFault` on an in-band error and on what is no chunk."""
        if data == "[DONE]":
            return
        try:
            chunk = json.loads(data)
            if "error" in chunk:
                raise LaneFault(f"The replica failed: {_error_message(chunk) or 'no reason given'}")
            for choice in chunk["choices"]:
                self.text += choice["delta"].get("content") or ""
                self.finish_reason = choice.get("finish_reason") or self.finish_reason
            self.model = chunk.get("model") or self.model
            self.usage.update(chunk.get("usage") or {})
            self.extra.update(chunk.get("pagefleet") or {})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise LaneFault("The replica's answer is no chat-completions stream.") from None

    def answer(self, seconds: float) -> Answer:
        """Raises `AttemptAborted` if the replica ended the answer before its end."""
        if self.finish_reason in (None, "abort"):
            raise AttemptAborted
        return Answer(
            text=self.text,
            finish_reason=str(self.finish_reason),
            prompt_tokens=self._tokens("prompt_tokens"),
            completion_tokens=self._tokens("completion_tokens"),
            seconds=seconds,
            model=clean_text(str(self.model)),
            extra=self.extra,
        )

    def _tokens(self, kind: str) -> int | None:
        count = self.usage.get(kind)
        return count if isinstance(count, int) and 0 <= count <= MAX_TOKENS else None
