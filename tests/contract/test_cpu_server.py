"""The server's HTTP over stand-in engines, on real sockets."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
import uvicorn

from app.documents.models import CPU_MODEL
from app.replicas.cpu.engine import Engine
from app.replicas.cpu.server import MAX_BODY_BYTES, create_app
from tests.pages import BODY_SIZE, chat_body, data_url, draw_page, encode
from tests.unit.replicas.cpu.engines import FaultyEngine, FixedEngine, GatedEngine

CHAT = "/v1/chat/completions"
PAGE = encode(draw_page([("Hello", BODY_SIZE)], size=(300, 200)))
DEADLINE_SECONDS = 20
FACTS = {"confidence": 1.0, "rotation": 0, "skew_degrees": 0.0, "model": "none", "warnings": []}

Gated = tuple[GatedEngine, httpx.AsyncClient]


@asynccontextmanager
async def serving(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server over `engine`."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(engine), log_config=None, timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with httpx.AsyncClient(base_url=base_url, timeout=DEADLINE_SECONDS) as client:
            yield client
    finally:
        server.should_exit = True
        await task


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """Of a server that finds the lines `one` and `two` on every page."""
    async with serving(FixedEngine("one", "two")) as client:
        yield client


@pytest.fixture(scope="module")
async def faulty() -> AsyncIterator[httpx.AsyncClient]:
    """Of a server whose engine fails on every page."""
    async with serving(FaultyEngine()) as client:
        yield client


@pytest.fixture(scope="module")
async def gated_server() -> AsyncIterator[Gated]:
    engine = GatedEngine("text")
    async with serving(engine) as client:
        yield engine, client


@pytest.fixture
def gated(gated_server: Gated) -> Gated:
    """An engine with its gate closed, and a client of its server."""
    engine, _ = gated_server
    engine.close()
    return gated_server


def ask(image: bytes = PAGE, **fields: Any) -> dict[str, Any]:
    return chat_body(data_url(image), **fields)


def events(response: httpx.Response) -> list[Any]:
    """Payloads of an SSE answer; the last one must be [DONE]."""
    *payloads, done = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert done == "[DONE]"
    return [json.loads(payload) for payload in payloads]


async def metric(client: httpx.AsyncClient, name: str) -> float:
    lines = (await client.get("/metrics")).text.splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


async def until(reached: Callable[[float], bool], client: httpx.AsyncClient, name: str) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        while not reached(await metric(client, name)):  # noqa: ASYNC110 - the server sets no events
            await anyio.sleep(0.01)


async def test_health_is_an_empty_200(client: httpx.AsyncClient) -> None:
    response = await client.get("/health")
    assert (response.status_code, response.content) == (200, b"")


async def test_models_names_the_one_model(client: httpx.AsyncClient) -> None:
    models = (await client.get("/v1/models")).json()
    assert [model["id"] for model in models["data"]] == [CPU_MODEL]


async def test_an_answer_has_the_chat_completions_shape(client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, json=ask(model=CPU_MODEL), headers={"X-Request-Id": "job-7"})
    answer = response.json()
    assert response.status_code == 200
    assert (answer["id"], answer["object"], answer["model"]) == ("chatcmpl-job-7", "chat.completion", CPU_MODEL)
    [choice] = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "one\n\ntwo"}
    assert choice["finish_reason"] == "stop"
    assert answer["system_fingerprint"] == "fixed 1, none"
    assert answer["pagefleet"] == FACTS
    assert set(answer["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}


async def test_a_stream_is_role_then_content_then_stop_then_usage_then_done(client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, json=ask(stream=True, stream_options={"include_usage": True}))
    assert response.headers["content-type"].startswith("text/event-stream")
    chunks = events(response)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert [choice for chunk in chunks for choice in (c["delta"] for c in chunk["choices"])] == [
        {"role": "assistant", "content": ""},
        {"content": "one\n\n"},
        {"content": "two"},
        {},
    ]
    assert [c["finish_reason"] for chunk in chunks for c in chunk["choices"]] == [None, None, None, "stop"]
    assert chunks[-1]["choices"] == []
    assert "usage" in chunks[-1]
    assert [chunk.get("pagefleet") for chunk in chunks] == [None, None, None, FACTS, None]


async def test_usage_is_not_streamed_unasked(client: httpx.AsyncClient) -> None:
    chunks = events(await client.post(CHAT, json=ask(stream=True)))
    assert not any("usage" in chunk for chunk in chunks)


async def test_the_role_is_sent_before_the_page_is_read(gated: Gated) -> None:
    engine, client = gated
    async with client.stream("POST", CHAT, json=ask(stream=True)) as response:
        lines = response.aiter_lines()
        assert json.loads((await anext(lines)).removeprefix("data: "))["choices"][0]["delta"]["role"] == "assistant"
        engine.gate.set()
        assert [line async for line in lines if line][-1] == "data: [DONE]"


async def test_it_answers_while_a_page_is_read_and_shows_its_load(gated: Gated) -> None:
    engine, client = gated
    async with asyncio.TaskGroup() as tasks:
        answers = [tasks.create_task(client.post(CHAT, json=ask())) for _ in range(3)]
        await until(lambda waiting: waiting == 2, client, 'vllm:num_requests_waiting{engine="0",model_name=')
        assert await metric(client, "vllm:num_requests_running") == 1
        assert await metric(client, "pagefleet_replica_slots") == 1
        assert (await client.get("/health")).status_code == 200
        assert len(engine.images) == 1
        engine.gate.set()
        assert [(await answer).status_code for answer in answers] == [200] * 3
        assert await metric(client, "vllm:num_requests_running") == 0


async def test_the_step_counter_moves_with_every_stage_of_a_page(gated: Gated) -> None:
    engine, client = gated
    async with asyncio.TaskGroup() as tasks:
        before = await metric(client, "pagefleet_replica_steps_total")
        answer = tasks.create_task(client.post(CHAT, json=ask()))
        await until(lambda steps: steps == before + 1, client, "pagefleet_replica_steps_total")
        engine.gate.set()
        await answer
        assert await metric(client, "pagefleet_replica_steps_total") == before + 4


@pytest.mark.parametrize("stream", [False, True])
async def test_a_waiting_page_whose_client_is_gone_is_never_read(gated: Gated, stream: bool) -> None:
    engine, client = gated
    other = encode(draw_page([("Other", BODY_SIZE)], size=(300, 200)))
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(client.post(CHAT, json=ask()))
        await until(lambda running: running == 1, client, "vllm:num_requests_running")
        second = tasks.create_task(client.post(CHAT, json=ask(other, stream=stream)))
        await until(lambda waiting: waiting == 1, client, "vllm:num_requests_waiting")
        second.cancel()
        await until(lambda waiting: waiting == 0, client, "vllm:num_requests_waiting")
        engine.gate.set()
        assert (await first).status_code == 200
        assert (await client.post(CHAT, json=ask())).status_code == 200
    assert engine.images == [PAGE, PAGE]


async def test_a_page_being_read_keeps_the_slot_when_its_client_leaves(gated: Gated) -> None:
    engine, client = gated
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(client.post(CHAT, json=ask()))
        await until(lambda running: running == 1, client, "vllm:num_requests_running")
        gone.cancel()
        following = tasks.create_task(client.post(CHAT, json=ask()))
        await until(lambda waiting: waiting == 1, client, "vllm:num_requests_waiting")
        assert len(engine.images) == 1
        engine.gate.set()
        assert (await following).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_damaged_image_is_a_bad_request(client: httpx.AsyncClient, stream: bool) -> None:
    response = await client.post(CHAT, json=ask(PAGE[:-500], stream=stream))
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("BadRequestError", 400, "messages")


async def test_an_unknown_model_is_not_found(client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, json=ask(model="olmocr"))
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "NotFoundError"


async def test_an_engine_that_fails_is_an_internal_error_and_the_server_goes_on(faulty: httpx.AsyncClient) -> None:
    for _ in range(2):
        response = await faulty.post(CHAT, json=ask())
        assert response.status_code == 500
        error = response.json()["error"]
        assert (error["type"], error["code"]) == ("InternalServerError", 500)
        assert "no memory left" in error["message"]


async def test_an_engine_that_fails_ends_a_stream_with_an_error_and_no_stop(faulty: httpx.AsyncClient) -> None:
    opening, error = events(await faulty.post(CHAT, json=ask(stream=True)))
    assert opening["choices"][0]["finish_reason"] is None
    assert error["error"]["type"] == "InternalServerError"


async def test_a_body_over_the_limit_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post(CHAT, content=b" " * (MAX_BODY_BYTES + 1))
    assert response.status_code == 413
    assert response.json()["error"]["code"] == 413


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/nothing", 404), ("GET", CHAT, 405)])
async def test_other_routes_are_refused_in_the_same_shape(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    response = await client.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["code"] == status
