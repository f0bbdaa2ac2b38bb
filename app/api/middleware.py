"""What holds for every request: HEAD like GET, a request id, and who may call at all."""

import ipaddress
from urllib.parse import urlsplit

import structlog
import uuid_utils
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import problem_response
from app.errors import Forbidden

IS_HEAD = "pagefleet.head"
"""Scope key: the request is a HEAD that is served as a GET."""

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
