"""The stand-ins keep what their documentation promises: other tests stand on them."""

import asyncio
import hashlib
import json
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from statistics import fmean, stdev

import httpx
import pytest

from tests.pages import chat_body, data_url
from tests.processes import children, is_alive, next_line, python
from tests.standins import Call, Fault, Reply, StandIn
from tests.standins.fleet import StandInFleet
from tests.standins.service_time import parse_service_time
from tests.waiting import until

PATH = "/v1/chat/completions"
DIE_WITH_PARENT = """
import asyncio
from tests.standins.fleet import StandInFleet

async def main():
    async with StandInFleet(2) as replicas:
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def replica() -> AsyncIterator[StandIn]:
    async with StandIn(text=lambda _: "Page of text") as standin:
        yield standin


@pytest.fixture
async def client(replica: StandIn) -> AsyncIterator[httpx.AsyncClient]:
    async with connected(replica.url) as client:
        yield client


def connected(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, trust_env=False, timeout=30)


def ask_body(*, stream: bool = False) -> bytes:
    return json.dumps(chat_body(data_url(b"an image"), model="standin", stream=stream)).encode()


async def ask(client: httpx.AsyncClient, *, stream: bool = False, rank: object = None) -> httpx.Response:
    headers = {} if rank is None else {"X-data-parallel-rank": str(rank)}
    return await client.post(PATH, content=ask_body(stream=stream), headers=headers)


async def text_of(client: httpx.AsyncClient) -> str:
    text: str = (await ask(client)).json()["choices"][0]["message"]["content"]
    return text


async def streamed(client: httpx.AsyncClient) -> list[str]:
    """The data of all events of a streamed answer."""
    answer = await ask(client, stream=True)
    assert answer.status_code == 200
    return [line.removeprefix("data: ") for line in answer.text.splitlines() if line]


async def running(replica: StandIn) -> list[int]:
    """By rank, as `/metrics` shows it."""
    async with connected(replica.url) as client:
        lines = (await client.get("/metrics")).text.splitlines()
    return [int(float(line.split()[-1])) for line in lines if line.startswith("vllm:num_requests_running{")]


# answers and their order


async def test_an_answer_names_its_call_and_its_image() -> None:
    async with StandIn() as replica, connected(replica.url) as client:
        digest = hashlib.sha256(b"an image").hexdigest()
        assert await text_of(client) == f"Call 1 read image {digest[:16]}."
        assert replica.calls[0].image == b"an image"
        assert replica.calls[0].json()["model"] == "standin"


async def test_a_plan_goes_before_the_mix_and_the_mix_before_what_is_always_answered(
    replica: StandIn, client: httpx.AsyncClient
) -> None:
    replica.always(Reply(text="always"))
    replica.mix((0.5, Reply(text="mixed")))
    replica.plan(Reply(text="first"), Reply(text="second"))
    texts = [await text_of(client) for _ in range(102)]
    assert texts[:2] == ["first", "second"]
    assert set(texts[2:]) == {"always", "mixed"}
    replica.mix()
    replica.always(None)
    assert await text_of(client) == "Page of text"


async def test_calls_over_the_slots_wait_and_are_shown_as_waiting() -> None:
    async with StandIn(slots=2) as replica, connected(replica.url) as client:
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


async def test_calls_over_the_queue_limit_are_refused_as_by_vllm() -> None:
    async with StandIn(slots=1, queue_limit=2) as replica, connected(replica.url) as client:
        replica.always(Reply(fault=Fault.HANG))
        calls = [asyncio.create_task(ask(client)) for _ in range(2)]
        await until(lambda: replica.present == 2)
        refused = await ask(client)
        assert refused.status_code == 503
        assert refused.json()["error"]["message"].startswith("The engine is currently busy")
        for call in calls:
            call.cancel()


async def test_beyond_the_knee_a_call_takes_longer() -> None:
    async with StandIn(slots=8, seconds=0.05, knee=2) as replica, connected(replica.url) as client:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(ask(client) for _ in range(8)))
        assert loop.time() - started >= 0.05 * 8 / 2


# faults


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.RESET_EARLY, Fault.CUT, Fault.DIE], ids=lambda fault: str(fault))
async def test_connections_break(replica: StandIn, client: httpx.AsyncClient, fault: Fault) -> None:
    replica.plan(Reply(fault=fault))
    with pytest.raises(httpx.TransportError):
        await ask(client, stream=True)


async def test_a_reset_before_the_body_is_sent_breaks_its_sending(replica: StandIn) -> None:
    replica.plan(Reply(fault=Fault.RESET_EARLY))
    reader, writer = await asyncio.open_connection(replica.host, replica.port)
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: replica\r\nContent-Length: 1000000\r\n\r\n".encode())
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()
    assert replica.call_count == 0


async def test_a_dead_replica_refuses_connections_until_it_is_started_again(
    replica: StandIn, client: httpx.AsyncClient
) -> None:
    replica.plan(Reply(fault=Fault.DIE))
    with pytest.raises(httpx.TransportError):
        await ask(client)
    with pytest.raises(httpx.ConnectError):
        await ask(client)
    await replica.start()
    assert await text_of(client) == "Page of text"


async def test_a_kept_alive_connection_is_cut_when_it_is_used_again(
    replica: StandIn, client: httpx.AsyncClient
) -> None:
    replica.plan(Reply(fault=Fault.KEEP_ALIVE_CUT))
    assert await text_of(client) == "Page of text"
    with pytest.raises(httpx.TransportError):
        await ask(client)
    assert await text_of(client) == "Page of text"


@pytest.mark.parametrize(
    "fault", [Fault.HANG, Fault.HANG_MIDWAY, Fault.HANG_WITH_COMMENTS], ids=lambda fault: str(fault)
)
async def test_a_hung_engine_does_not_step_and_its_health_is_good(
    replica: StandIn, client: httpx.AsyncClient, fault: Fault
) -> None:
    replica.plan(Reply(fault=fault))
    call = asyncio.create_task(ask(client, stream=True))
    await until(lambda: replica.running == 1)
    await asyncio.sleep(0.05)
    (engine,) = replica.engines
    assert engine.read_steps() == engine.read_steps()
    assert (await client.get("/health")).status_code == 200
    assert not call.done()
    call.cancel()


async def test_a_slow_stream_steps_all_the_time(replica: StandIn, client: httpx.AsyncClient) -> None:
    replica.plan(Reply(chunks=2, chunk_seconds=60))
    call = asyncio.create_task(ask(client, stream=True))
    await until(lambda: replica.running == 1)
    (engine,) = replica.engines
    assert engine.read_steps() < engine.read_steps()
    call.cancel()


@pytest.mark.parametrize(
    ("fault", "media_type", "body"),
    [
        (Fault.ERROR_BODY, "application/json", b'{"error": {"message": "EngineCore'),
        (Fault.HTML, "text/html", b"<!DOCTYPE html>"),
        (Fault.GARBAGE, "text/event-stream", bytes(range(128, 256))),
    ],
    ids=lambda value: str(value) if isinstance(value, Fault) else "",
)
async def test_a_status_of_200_may_hold_no_answer(
    replica: StandIn, client: httpx.AsyncClient, fault: Fault, media_type: str, body: bytes
) -> None:
    replica.plan(Reply(fault=fault))
    answer = await ask(client, stream=True)
    assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
    assert answer.content.startswith(body)


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        (Reply(fault=Fault.IN_BAND_ERROR), lambda events: "error" in json.loads(events[-2])),
        (Reply(fault=Fault.MALFORMED), lambda events: '{"choices": [' in events),
        (Reply(fault=Fault.NO_FINISH), lambda events: events[-1] != "[DONE]"),
        (Reply(fault=Fault.EMPTY_CHOICES), lambda events: json.loads(events[0])["choices"] == []),
        (Reply(finish_reason="abort"), lambda events: '"finish_reason": "abort"' in events[-3]),
        (Reply(fault=Fault.RUNAWAY), lambda events: len(events) > 2000 and '"length"' in events[-3]),
    ],
    ids=lambda value: (value.fault or value.finish_reason) if isinstance(value, Reply) else "",
)
async def test_what_goes_wrong_in_a_stream(
    replica: StandIn, client: httpx.AsyncClient, reply: Reply, wrong: Callable[[list[str]], bool]
) -> None:
    good = await streamed(client)
    assert good[-1] == "[DONE]"
    assert not wrong(good)
    replica.plan(reply)
    assert wrong(await streamed(client))


async def test_a_replica_that_shuts_down_is_healthy_ends_its_calls_and_refuses_new_ones(
    replica: StandIn, client: httpx.AsyncClient
) -> None:
    replica.plan(Reply(seconds=0.2))
    call = asyncio.create_task(text_of(client))
    await until(lambda: replica.running == 1)
    replica.shutting_down = True
    refused = await ask(client)
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        500,
        "cannot schedule new futures after shutdown",
    )
    assert (await client.get("/health")).status_code == 200
    assert await call == "Page of text"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_replica_told_to_stop_ends_all_its_calls_as_aborted(stream: bool) -> None:
    async with StandIn(slots=1, seconds=60) as replica, connected(replica.url) as client:
        calls = [asyncio.create_task(ask(client, stream=stream)) for _ in range(3)]
        await until(lambda: replica.present == 3)
        replica.abort()
        for call in calls:
            answer = await call
            assert answer.status_code == 200
            assert '"finish_reason": "abort"' in answer.text
        await until(lambda: replica.present == 0)
        assert replica.disconnects == 0
        replica.seconds = 0
        assert '"finish_reason": "stop"' in (await ask(client, stream=stream)).text


# ranks


async def test_calls_without_a_pin_are_spread_and_with_one_they_go_there() -> None:
    async with StandIn(ranks=2, slots=8, seconds=60) as replica, connected(replica.url) as client:
        calls = [asyncio.create_task(ask(client)) for _ in range(8)]
        await until(lambda: replica.running == 8)
        assert await running(replica) == [4, 4]
        calls += [asyncio.create_task(ask(client, rank=1)) for _ in range(3)]
        calls.append(asyncio.create_task(ask(client, rank="first")))  # no number: ignored silently
        await until(lambda: replica.running == 12)
        assert await running(replica) == [5, 7]
        assert [call.rank for call in replica.calls[8:11]] == [1, 1, 1]
        for call in calls:
            call.cancel()


@pytest.mark.parametrize("rank", [2, -1])
async def test_a_rank_that_is_not_there_is_refused_as_by_vllm(rank: int) -> None:
    async with StandIn(ranks=2) as replica, connected(replica.url) as client:
        refused = await ask(client, rank=rank)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"] == f"data_parallel_rank {rank} is out of range [0, 2)."


async def test_a_server_that_ignores_the_pin_spreads_the_calls() -> None:
    async with StandIn(ranks=2, seconds=60, honours_rank=False) as replica, connected(replica.url) as client:
        calls = [asyncio.create_task(ask(client, rank=7)) for _ in range(4)]
        await until(lambda: replica.running == 4)
        assert await running(replica) == [2, 2]
        for call in calls:
            call.cancel()


async def test_a_rank_has_faults_and_figures_of_its_own() -> None:
    async with StandIn(ranks=2, slots=3) as replica, connected(replica.url) as client:
        replica.engines[1].script.always = Reply(status=500)
        replica.engines[1].kv_usage = 0.97
        assert (await ask(client, rank=0)).status_code == 200
        assert (await ask(client, rank=1)).status_code == 500
        text = (await client.get("/metrics")).text
        assert 'vllm:kv_cache_usage_perc{engine="0",model_name="standin"} 0.0' in text
        assert 'vllm:kv_cache_usage_perc{engine="1",model_name="standin"} 0.97' in text
        assert 'pagefleet_replica_slots{engine="1",model_name="standin"} 3' in text


# service times


def call_for(body: bytes) -> Call:
    return Call(1, {}, body, len(body))


def test_service_times_have_the_distribution_that_is_ordered() -> None:
    lognormal = parse_service_time("lognormal:5,0.7", random.Random(1))
    assert callable(lognormal)
    times = [lognormal(call_for(b"")) for _ in range(20_000)]
    assert fmean(times) == pytest.approx(5, rel=0.05)
    assert stdev(times) / fmean(times) == pytest.approx(0.7, rel=0.1)

    clipped = parse_service_time("lognormal:5,0.7,4,6", random.Random(1))
    assert callable(clipped)
    assert {4, 6} < {clipped(call_for(b"")) for _ in range(1000)}

    bimodal = parse_service_time("bimodal:1,60,0.02", random.Random(1))
    assert callable(bimodal)
    times = [bimodal(call_for(b"")) for _ in range(20_000)]
    assert set(times) == {1, 60}
    assert times.count(60) / len(times) == pytest.approx(0.02, rel=0.2)


def test_a_page_takes_as_long_wherever_it_is_read() -> None:
    one, two = (parse_service_time("image:1,3", random.Random(seed)) for seed in (1, 2))
    assert callable(one)
    assert callable(two)
    pages = [call_for(str(number).encode()) for number in range(500)]
    times = [one(page) for page in pages]
    assert times == [two(page) for page in pages]
    assert 1 <= min(times) < 1.2
    assert 2.8 < max(times) <= 3


@pytest.mark.parametrize("text", ["soon", "uniform:1,2", "lognormal:1", "bimodal:1,2,3,4"])
def test_what_is_no_service_time_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_service_time(text, random.Random())


# processes


async def test_the_process_serves_counts_and_ends() -> None:
    command = (sys.executable, "-m", "tests.standins", "--slots", "3", "--seconds", "0", "--text", "from afar")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().removeprefix("standin listening on ").strip()
        async with connected(url) as client:
            assert await text_of(client) == "from afar"
            assert "pagefleet_replica_slots 3" in (await client.get("/metrics")).text
            counters = (await client.get("/standin")).json()
            assert (counters["calls"], counters["peak"], counters["disconnects"]) == (1, 1, 0)
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_a_fleet_takes_orders_and_its_replicas_die_and_come_back_on_their_ports() -> None:
    async with StandInFleet(2, seconds=0, text="Read.", model=["ocr", "ocr-latest"]) as replicas:
        first, second = replicas
        async with connected(first.url) as client:
            models = (await client.get("/v1/models")).json()["data"]
            assert [model["id"] for model in models] == ["ocr", "ocr-latest"]
            await first.plan(Reply(status=429, headers={"Retry-After": "3"}))
            refused = await ask(client)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "3")
            await first.always(Reply(fault=Fault.RESET))
            with pytest.raises(httpx.TransportError):
                await ask(client)
            assert await replicas.calls() == [2, 0]

            await first.kill()
            with pytest.raises(httpx.ConnectError):
                await ask(client)
            await first.start()
            assert await text_of(client) == "Read."

            await second.plan(Reply(fault=Fault.DIE))
            async with connected(second.url) as other:
                with pytest.raises(httpx.TransportError):
                    await ask(other)
            assert await second.ended() == -signal.SIGKILL


async def test_a_replica_may_leave_for_a_while() -> None:
    async with StandInFleet(1) as replicas, connected(replicas.urls[0]) as client:

        async def is_there() -> bool:
            try:
                return (await client.get("/health")).status_code == 200
            except httpx.TransportError:
                return False

        async def is_gone() -> bool:
            return not await is_there()

        await replicas[0].order(leave=0.3)
        await until(is_gone)
        await until(is_there)


@pytest.mark.parametrize(
    "orders",
    [{"nothing": 1}, {"always": {"fault": "sloth"}}, {"plan": [{"colour": "red"}]}, {"rank": 4, "foreign": 1}, []],
    ids=str,
)
async def test_orders_that_make_no_sense_are_refused(client: httpx.AsyncClient, orders: object) -> None:
    refused = await client.post("/standin", json=orders)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("no order: ")


async def test_orders_may_be_for_one_rank() -> None:
    async with StandIn(ranks=2) as replica, connected(replica.url) as client:
        orders = {"rank": 1, "foreign": 5, "preemptions": 2, "plan": [{"status": 503}]}
        assert (await client.post("/standin", json=orders)).status_code == 200
        assert await running(replica) == [0, 5]
        assert 'num_preemptions_total{engine="1",model_name="standin"} 2.0' in (await client.get("/metrics")).text
        assert (await ask(client, rank=0)).status_code == 200
        assert (await ask(client, rank=1)).status_code == 503


async def test_several_are_started_at_once_by_hand_and_end_together() -> None:
    with python("-m", "tests.standins", "--count", "2", "--fault", "429:1", "--seconds", "0") as process:
        urls = [next_line(process).split()[-1] for _ in range(2)]
        pids = children(process.pid)
        assert len(set(urls)) == len(pids) == 2
        for url in urls:
            async with connected(url) as client:
                assert (await ask(client)).status_code == 429
        process.terminate()
        assert process.wait() == 0
    await until(lambda: not any(map(is_alive, pids)), seconds=10)


async def test_a_fleet_dies_with_the_process_that_started_it() -> None:
    with python("-c", DIE_WITH_PARENT) as process:
        assert next_line(process) == "ready"
        pids = children(process.pid)
        assert len(pids) == 2
        process.kill()
    await until(lambda: not any(map(is_alive, pids)), seconds=10)
