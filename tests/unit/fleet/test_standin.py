"""The stand-in keeps what its documentation promises: other tests stand on it."""

import asyncio
import hashlib
import signal
import sys

import httpx

from tests.standin import Fault, Reply, StandIn
from tests.unit.fleet.conftest import page_request, until


async def ask(client: httpx.AsyncClient, **changes: object) -> httpx.Response:
    body = b"".join(page_request())
    if not changes.get("stream", True):
        body = body.replace(b'"stream": true', b'"stream": false')
    return await client.post("/v1/chat/completions", content=body)


async def test_an_answer_without_stream_is_one_object() -> None:
    async with StandIn() as replica, httpx.AsyncClient(base_url=replica.url) as client:
        replica.plan(Reply(text="whole"))
        answer = (await ask(client, stream=False)).json()
        assert answer["choices"][0]["message"]["content"] == "whole"
        assert answer["choices"][0]["finish_reason"] == "stop"


async def test_an_answer_names_its_call_and_its_image() -> None:
    async with StandIn() as replica, httpx.AsyncClient(base_url=replica.url) as client:
        answer = (await ask(client, stream=False)).json()
        digest = hashlib.sha256(b"an image").hexdigest()
        assert answer["choices"][0]["message"]["content"] == f"Call 1 read image {digest[:16]}."
        assert replica.calls[0].image == b"an image"
        assert replica.calls[0].json()["model"] == "standin"


async def test_calls_over_the_slots_wait_and_are_shown_as_waiting() -> None:
    async with StandIn(slots=2) as replica, httpx.AsyncClient(base_url=replica.url) as client:
        replica.always(Reply(fault=Fault.HANG))
        calls = [asyncio.create_task(ask(client)) for _ in range(5)]
        await until(lambda: replica.present == 5)
        text = (await client.get("/metrics")).text
        assert 'vllm:num_requests_running{engine="0",model_name="standin"} 2.0' in text
        assert 'vllm:num_requests_waiting{engine="0",model_name="standin"} 3.0' in text
        for call in calls:
            call.cancel()
        await until(lambda: replica.disconnects == 5)
        assert (replica.peak, replica.present, replica.running) == (5, 0, 0)


async def test_the_process_serves_counts_and_ends() -> None:
    command = [sys.executable, "-m", "tests.standin", "--slots", "3", "--seconds", "0", "--text", "from afar"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().removeprefix("standin listening on ").strip()
        async with httpx.AsyncClient(base_url=url) as client:
            assert "from afar" in (await ask(client, stream=False)).text
            assert "pagefleet_replica_slots 3" in (await client.get("/metrics")).text
            assert (await client.get("/standin")).json() == {"calls": 1, "peak": 1, "disconnects": 0}
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
