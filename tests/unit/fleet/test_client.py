import asyncio
import hashlib
import json
import socket
from collections.abc import AsyncIterator

import httpx
import pytest

from app.errors import AttemptAborted, AttemptError, LaneFault, LaneFull, LaneUnreachable, RequestRefused
from app.fleet.client import Answer, complete, open_client
from tests.standins import Fault, Reply, StandIn
from tests.unit.fleet.conftest import page_request, until


@pytest.fixture
async def replica() -> AsyncIterator[StandIn]:
    async with StandIn(text=lambda _: "Page of text") as standin:
        yield standin


@pytest.fixture
async def client(replica: StandIn) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(replica.url, api_key="secret") as opened:
        yield opened


def ignore() -> None:
    pass


async def ask(client: httpx.AsyncClient) -> Answer:
    return await complete(client, page_request(), ignore)


async def test_an_answer_is_the_whole_text_with_its_facts(replica: StandIn, client: httpx.AsyncClient) -> None:
    replica.plan(Reply(text="# Title\n\nGrüße — 你好 \u2028 end", chunks=5))
    answer = await ask(client)
    assert answer.text == "# Title\n\nGrüße — 你好 \u2028 end"
    assert answer.finish_reason == "stop"
    assert answer.model == "standin"
    assert (answer.prompt_tokens, answer.completion_tokens) == (100, 6)
    assert 0 < answer.seconds < 10


async def test_the_parts_of_the_body_arrive_as_one_request(replica: StandIn, client: httpx.AsyncClient) -> None:
    image = bytes(range(256)) * 4000
    body = page_request(image)
    await complete(client, body, ignore)
    call = replica.calls[0]
    assert call.body == b"".join(body)
    assert call.image_sha256 == hashlib.sha256(image).hexdigest()
    assert call.headers["content-length"] == str(call.size)
    assert "transfer-encoding" not in call.headers
    assert call.headers["authorization"] == "Bearer secret"


async def test_no_proxy_of_the_environment_is_used(replica: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with open_client(replica.url, api_key=None) as client:
        assert (await ask(client)).text == "Page of text"
    assert "authorization" not in replica.calls[0].headers


async def test_length_is_returned_for_the_profile_to_judge(replica: StandIn, client: httpx.AsyncClient) -> None:
    replica.plan(Reply(finish_reason="length"))
    assert (await ask(client)).finish_reason == "length"


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(fault=Fault.RESET), LaneUnreachable),
        (Reply(fault=Fault.CUT), LaneUnreachable),
        (Reply(finish_reason="abort"), AttemptAborted),
        (Reply(fault=Fault.NO_FINISH), AttemptAborted),
        (Reply(fault=Fault.IN_BAND_ERROR), LaneFault),
        (Reply(fault=Fault.MALFORMED), LaneFault),
        (Reply(status=500), LaneFault),
        (Reply(status=502), LaneFault),
        (Reply(status=408), LaneFault),
        (Reply(status=307), LaneFault),
        (Reply(status=429), LaneFull),
        (Reply(status=503), LaneFull),
        (Reply(status=400), RequestRefused),
        (Reply(status=404), RequestRefused),
        (Reply(status=422), RequestRefused),
    ],
    ids=lambda value: str(value.fault or value.status) if isinstance(value, Reply) else value.__name__,
)
async def test_each_fault_has_its_error(
    replica: StandIn, client: httpx.AsyncClient, reply: Reply, error: type[AttemptError]
) -> None:
    replica.plan(reply)
    with pytest.raises(error) as caught:
        await ask(client)
    assert replica.url not in caught.value.detail
    assert (await ask(client)).text == "Page of text"  # nothing is left over on the connection


async def test_what_a_replica_says_of_itself_is_cleaned(replica: StandIn, client: httpx.AsyncClient) -> None:
    """A NUL or half a surrogate pair could not be stored."""
    replica.model = "tiny\x00\ud800 1"
    assert (await ask(client)).model == "tiny 1"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({}, 1.0), ({"Retry-After": "7"}, 7.0), ({"Retry-After": "86400"}, 60.0), ({"Retry-After": "soon"}, 1.0)],
)
async def test_a_full_replica_says_for_how_long(
    replica: StandIn, client: httpx.AsyncClient, headers: dict[str, str], seconds: float
) -> None:
    replica.plan(Reply(status=503, headers=headers))
    with pytest.raises(LaneFull) as caught:
        await ask(client)
    assert caught.value.problem()["retry_after"] == seconds


async def test_the_replicas_own_words_are_passed_on_short(replica: StandIn, client: httpx.AsyncClient) -> None:
    replica.plan(Reply(status=400, text=""), Reply(fault=Fault.IN_BAND_ERROR))
    with pytest.raises(RequestRefused, match=r"^The replica answered 400: Bad Request$"):
        await ask(client)
    with pytest.raises(LaneFault, match=r"^The replica failed: EngineCore encountered an issue\."):
        await ask(client)


async def test_a_refused_connection_and_an_unknown_host_are_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        for url in (f"http://127.0.0.1:{port}", "http://replica.invalid:8000"):
            async with open_client(url, api_key=None) as client:
                with pytest.raises(LaneUnreachable) as caught:
                    await ask(client)
            assert caught.value.detail == "The replica can't be connected to."


async def test_a_kept_alive_connection_that_died_is_not_the_replicas_fault(
    replica: StandIn, client: httpx.AsyncClient
) -> None:
    await ask(client)
    replica.plan(Reply(fault=Fault.RESET))
    assert (await ask(client)).text == "Page of text"
    assert len(replica.calls) == 3


async def test_cancelling_closes_the_connection(replica: StandIn, client: httpx.AsyncClient) -> None:
    """That is how a replica learns that nobody waits for its answer."""
    replica.always(Reply(fault=Fault.HANG_MIDWAY))
    task = asyncio.create_task(ask(client))
    await until(lambda: replica.running)
    task.cancel()
    await until(lambda: replica.disconnects == 1)
    assert replica.present == 0
    assert task.cancelled()


async def test_cancelling_at_any_moment_leaves_no_connection_open(replica: StandIn, client: httpx.AsyncClient) -> None:
    replica.seconds = 60
    for turns in range(60):  # of the event loop; the server has the request after about 15
        task = asyncio.create_task(ask(client))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    assert 0 < len(replica.calls) < 60
    await until(lambda: replica.open_connections == 0)


async def test_each_event_is_progress(replica: StandIn, client: httpx.AsyncClient) -> None:
    seen: list[int] = []
    replica.plan(Reply(chunks=10))
    await complete(client, page_request(), lambda: seen.append(1))
    assert len(seen) >= 10


async def serve_raw(response: bytes) -> asyncio.Server:
    """A server that reads one request and sends `response`, whatever that is."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"]}]}")
        writer.write(response)
        await writer.drain()
        writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


def event_stream(*events: object) -> bytes:
    lines = "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + lines.encode()


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", LaneFault),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", LaneUnreachable),
        (event_stream([]), LaneFault),
        (event_stream("null"), LaneFault),
        (event_stream({"object": "chat.completion.chunk"}), LaneFault),
        (event_stream({"choices": [{"delta": {"content": ["a list"]}}]}), LaneFault),
        (event_stream({"choices": "none"}), LaneFault),
        (event_stream("[" * 100_000), LaneFault),
        (event_stream({"error": "out of memory"}), LaneFault),
        (event_stream(*[{"choices": [{"delta": {"content": "x" * 1_000_000}}]}] * 20), LaneFault),
        (event_stream(), AttemptAborted),
    ],
    ids=[
        "no stream",
        "no HTTP",
        "a list",
        "null",
        "no choices",
        "content is a list",
        "choices are a word",
        "deep",
        "error is a word",
        "without end",
        "empty",
    ],
)
async def test_what_is_no_answer_is_a_fault_of_the_replica(response: bytes, error: type[AttemptError]) -> None:
    server = await serve_raw(response)
    host, port = server.sockets[0].getsockname()
    async with server, open_client(f"http://{host}:{port}", api_key=None) as client:
        with pytest.raises(error):
            await ask(client)


async def test_an_answer_needs_no_usage_and_no_done() -> None:
    chunk = {"choices": [{"delta": {"content": "text"}, "finish_reason": "stop"}], "usage": None}
    server = await serve_raw(event_stream(chunk))
    host, port = server.sockets[0].getsockname()
    async with server, open_client(f"http://{host}:{port}", api_key=None) as client:
        answer = await ask(client)
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("text", None, None)
