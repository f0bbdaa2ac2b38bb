import pytest
from starlette.requests import ClientDisconnect, Request

from app.api.bodies import body_chunks
from app.errors import UploadTimeout
from tests.unit.api.asgi import Exchange, scope_of

LONG_SECONDS = 60.0


async def received(exchange: Exchange, idle_seconds: float, into: list[bytes]) -> None:
    async for chunk in body_chunks(Request(scope_of("POST"), exchange.receive), idle_seconds):
        into.append(chunk)


async def test_a_body_comes_in_its_parts() -> None:
    chunks: list[bytes] = []
    await received(Exchange([b"one", b"two"]), LONG_SECONDS, chunks)
    assert b"|".join(chunks).rstrip(b"|") == b"one|two"


async def test_a_body_that_stops_coming_is_given_up() -> None:
    chunks: list[bytes] = []
    with pytest.raises(UploadTimeout, match=r"0\.02 s"):
        await received(Exchange([b"one"], endless=True), 0.02, chunks)
    assert chunks == [b"one"]


async def test_a_client_that_leaves_is_told_from_one_that_waits() -> None:
    exchange = Exchange([b"one"], endless=True)
    exchange.left.set()
    with pytest.raises(ClientDisconnect):
        await received(exchange, LONG_SECONDS, [])
