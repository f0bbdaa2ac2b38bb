import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
import structlog
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api import middleware
from app.api.middleware import CloseUnread, HeadAsGet, LoopbackOnly, RequestId, is_loopback
from tests.unit.api.asgi import Exchange, scope_of


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Tells the method and reads no body."""
    await PlainTextResponse(scope["method"])(scope, receive, send)


async def parts(scope: Scope, receive: Receive, send: Send) -> None:
    async def chunks() -> Any:
        yield b"one"
        yield b"two"

    await StreamingResponse(chunks(), headers={"X-Kind": "parts"})(scope, receive, send)


async def read_body(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the whole body and tells its length."""
    length, more = 0, True
    while more:
        message = await receive()
        length, more = length + len(message["body"]), message["more_body"]
    await PlainTextResponse(str(length))(scope, receive, send)


async def run(app: ASGIApp, scope: Scope, exchange: Exchange | None = None) -> Exchange:
    exchange = exchange or Exchange()
    async with asyncio.timeout(10):
        await exchange.run(app, scope)
    return exchange


@pytest.mark.parametrize("kind", [HeadAsGet, RequestId, CloseUnread, LoopbackOnly])
async def test_what_is_no_http_passes(kind: type[HeadAsGet | RequestId | CloseUnread | LoopbackOnly]) -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    exchange = Exchange()
    await kind(app)({"type": "lifespan"}, exchange.receive, exchange.send)
    assert seen == [{"type": "lifespan"}]


# HEAD


async def test_head_is_get_without_a_body() -> None:
    get, head = [await run(HeadAsGet(parts), scope_of(method)) for method in ("GET", "HEAD")]
    assert (get.body, head.body) == (b"onetwo", b"")
    assert head.headers == get.headers
    assert head.complete


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_other_methods_stay_what_they_are(method: str) -> None:
    assert (await run(HeadAsGet(answer), scope_of(method))).body == method.encode()


# request ids


async def test_a_request_id_is_echoed_and_bound_to_the_logs_of_the_request() -> None:
    bound: list[Mapping[str, Any]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        bound.append(structlog.contextvars.get_contextvars())
        await answer(scope, receive, send)

    exchange = await run(RequestId(app), scope_of(headers={"X-Request-Id": "job 7"}))
    assert exchange.headers["x-request-id"] == "job 7"
    assert bound == [{"request_id": "job 7"}]
    assert structlog.contextvars.get_contextvars() == {}


async def test_what_one_request_binds_is_not_told_of_the_next_on_its_connection() -> None:
    bound: list[Mapping[str, Any]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        bound.append(structlog.contextvars.get_contextvars())
        structlog.contextvars.bind_contextvars(caller="anna")
        await answer(scope, receive, send)

    for request_id in ("1", "2"):
        await run(RequestId(app), scope_of(headers={"X-Request-Id": request_id}))
    assert bound == [{"request_id": "1"}, {"request_id": "2"}]


@pytest.mark.parametrize("given", [None, "", "x" * 129, "tab\there", "bell\x07"])
async def test_an_unfit_request_id_is_replaced(given: str | None) -> None:
    headers = {} if given is None else {"X-Request-Id": given}
    made = {(await run(RequestId(answer), scope_of(headers=headers))).headers["x-request-id"] for _ in range(2)}
    assert len(made) == 2
    assert given not in made


# the loopback


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "a.localhost", "127.0.0.1", "127.0.0.1:8000", "127.9.9.9", "[::1]", "[::1]:8000"],
)
async def test_loopback_hosts_are_served(host: str) -> None:
    assert (await run(LoopbackOnly(answer), scope_of(headers={"Host": host}))).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("", "attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example", "notlocalhost"),
        *("10.0.0.1:8000", "0.0.0.0", "[::]:8000", "[2001:db8::1]", "::1", "[::1", "a[b", ":8000", "\u00bd"),
    ],
)
async def test_other_hosts_are_refused(host: str) -> None:
    exchange = await run(LoopbackOnly(answer), scope_of(headers={"Host": host}))
    assert exchange.status == 403
    assert b'"code":"forbidden"' in exchange.body


async def test_a_request_without_a_host_is_refused() -> None:
    assert (await run(LoopbackOnly(answer), scope_of())).status == 403


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
async def test_probes_come_with_any_host(path: str) -> None:
    assert (await run(LoopbackOnly(answer), scope_of(path=path, headers={"Host": "10.0.0.1"}))).status == 200


@pytest.mark.parametrize(
    ("host", "loopback"), [("::1", True), ("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False), ("", False)]
)
def test_addresses_to_listen_on(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


# bodies that nobody wants


async def test_an_answer_before_the_end_of_the_body_closes_the_connection_once_the_body_is_over() -> None:
    exchange = Exchange([b"a", b"b", b"c"])
    await run(CloseUnread(answer), scope_of("POST", headers={"Content-Length": "3"}), exchange)
    assert exchange.headers["connection"] == "close"
    assert (exchange.body, exchange.complete, exchange.unread) == (b"POST", True, 0)


async def test_the_answer_is_sent_before_the_rest_of_the_body_is_waited_for() -> None:
    exchange = Exchange([b"a"], endless=True)
    app = CloseUnread(answer)
    running = asyncio.create_task(run(app, scope_of("POST", headers={"Transfer-Encoding": "chunked"}), exchange))
    async with asyncio.timeout(10):
        while len(exchange.sent) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert (exchange.body, exchange.complete) == (b"POST", False)
    exchange.left.set()
    await running
    assert exchange.complete


async def test_a_client_that_never_stops_sending_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "LINGER_SECONDS", 0.02)
    exchange = Exchange([b"a"], endless=True)
    await run(CloseUnread(answer), scope_of("POST", headers={"Transfer-Encoding": "chunked"}), exchange)
    assert (exchange.body, exchange.complete) == (b"POST", True)


async def test_a_body_that_was_read_leaves_the_connection_open() -> None:
    exchange = Exchange([b"a", b"b", b"c"])
    await run(CloseUnread(read_body), scope_of("POST", headers={"Content-Length": "3"}), exchange)
    assert exchange.body == b"3"
    assert "connection" not in exchange.headers


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "0"}], ids=["no body", "empty body"])
async def test_a_request_without_a_body_leaves_the_connection_open(headers: dict[str, str]) -> None:
    exchange = await run(CloseUnread(answer), scope_of("POST", headers=headers))
    assert "connection" not in exchange.headers


async def test_a_client_that_has_gone_is_not_waited_for() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        message: Message = {}
        while message.get("type") != "http.disconnect":
            message = await receive()
        await answer(scope, receive, send)

    exchange = Exchange([b"a"], endless=True)
    exchange.left.set()
    await run(CloseUnread(app), scope_of("POST", headers={"Content-Length": "9"}), exchange)
    assert exchange.complete
