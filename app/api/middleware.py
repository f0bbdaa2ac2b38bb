"""What holds for every request: HEAD like GET, a request id, and who may call at all."""

import asyncio
import ipaddress
from contextlib import suppress
from urllib.parse import urlsplit

import structlog
import uuid_utils
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import problem_response
from app.errors import Draining, Forbidden

IS_HEAD = "pagefleet.head"
"""Scope key: the request is a HEAD that is served as a GET."""

LINGER_SECONDS = 5.0
"""How long a client may go on sending a body that nobody wants."""
MAX_REQUEST_ID_CHARACTERS = 128
OPEN_PATHS = frozenset({"/livez", "/readyz", "/metrics"})
"""Probes and scrapes come from anywhere and with any Host."""


class HeadAsGet:
    """Answer HEAD wherever GET is answered: the same headers, no body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET", IS_HEAD: True}, receive, send_without_body)


class RequestId:
    """Take or make `X-Request-Id`, echo it, and bind it to the log lines of the request.

    It is `request.state.request_id` too, for the answer to an unforeseen fault, which is made outside of this.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if 0 < len(given) <= MAX_REQUEST_ID_CHARACTERS and given.isprintable() else ""
        request_id = request_id or str(uuid_utils.uuid7())
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        structlog.contextvars.clear_contextvars()  # requests of one connection may share their context
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._app(scope, receive, send_with_id)


class CloseUnread:
    """Close the connection after an answer that was given before the whole body was read.

    The server would otherwise receive the rest, gigabytes maybe, to throw it away. It closes a little later than it
    could: many clients read the answer only when they have sent their body, and lose it if they can't.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        unread = True

        async def receive_noting_end() -> Message:
            nonlocal unread
            message = await receive()
            unread = unread and message["type"] == "http.request" and message.get("more_body", False)
            return message

        async def linger() -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_SECONDS):
                    while unread:
                        await receive_noting_end()

        async def send_closing(message: Message) -> None:
            if unread and message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Connection"] = "close"
            if unread and message["type"] == "http.response.body" and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await linger()
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        await self._app(scope, receive_noting_end, send_closing)


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


class DrainedInTime:
    """Tell clients whose request the server gives up at shutdown that it is draining, instead of a bare 500."""

    def __init__(self, app: ASGIApp, draining: asyncio.Event) -> None:
        self._app = app
        self._draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_noting_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting_start)
        except asyncio.CancelledError:
            if started or scope["type"] != "http" or not self._draining.is_set():
                raise
            await problem_response(Draining())(scope, receive, send)


class LoopbackOnly:
    """Without keys, serve loopback Host headers only: a web page's script can't reach in by DNS rebinding."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or is_loopback(_hostname(scope)):
            await self._app(scope, receive, send)
            return
        refusal = Forbidden("without API keys only loopback is served; see PAGEFLEET_ALLOW_ANONYMOUS")
        await problem_response(refusal)(scope, receive, send)


def _hostname(scope: Scope) -> str:
    """The Host header without its port; empty where it names no host."""
    try:
        return urlsplit(f"//{Headers(scope=scope).get('host', '')}").hostname or ""
    except ValueError:  # brackets without an IPv6 address in them
        return ""


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine's loopback interface."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
