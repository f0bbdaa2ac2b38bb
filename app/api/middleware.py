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
from app.errors import Forbidden

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
    """Take or make `X-Request-Id`, echo it, and bind it to the log lines of the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if 0 < len(given) <= MAX_REQUEST_ID_CHARACTERS and given.isprintable() else ""
        request_id = request_id or str(uuid_utils.uuid7())

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

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
        if scope["type"] != "http" or not {"content-length", "transfer-encoding"} & set(Headers(scope=scope).keys()):
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


class LoopbackOnly:
    """Without keys, serve loopback Host headers only: a web page's script can't reach in by DNS rebinding."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            host = urlsplit(f"//{Headers(scope=scope).get('host', '')}").hostname or ""
            if not is_loopback(host):
                await problem_response(
                    Forbidden("without API keys only loopback is served; see PAGEFLEET_ALLOW_ANONYMOUS")
                )(scope, receive, send)
                return
        await self._app(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine's loopback interface."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
