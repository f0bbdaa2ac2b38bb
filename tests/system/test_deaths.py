"""What dies in the middle, and what is left of it: nothing is lost and nothing read twice."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.pdfs import numbered_pdf
from tests.processes import children, command_line, is_alive
from tests.standins import Reply, StandIn
from tests.system.gateway import Gateway, running_gateway
from tests.waiting import until


async def all_busy(gateway: Gateway) -> bool:
    return all(lane["in_flight"] for lane in await gateway.lanes())


async def pages_done(gateway: Gateway, document_id: str, count: int) -> None:
    """Return when `count` pages of the document have ended."""
    done = 0
    async for event in gateway.follow(document_id):
        done += event.kind == "page"
        if done == count:
            return


async def test_a_killed_gateway_leaves_no_process_and_loses_no_page(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, environment={"PAGEFLEET_CPU_REPLICAS": "2"}) as gateway:
        document = await gateway.post(numbered_pdf(20))
        await pages_done(gateway, document["id"], 5)
        orphans = children(gateway.process.pid)
        assert any("app.replicas.cpu" in command_line(pid) for pid in orphans)
        assert any("app.rendering.child" in command_line(pid) for pid in orphans)
        await gateway.kill()
    await until(lambda: not any(map(is_alive, orphans)), seconds=10)

    async with running_gateway(tmp_path, environment={"PAGEFLEET_CPU_REPLICAS": "2"}) as gateway:
        state = (await gateway.client.get(document["links"]["self"])).json()
        assert state["pages"]["succeeded"] >= 5
        events = [event async for event in gateway.follow(document["id"])]
        texts = await gateway.texts(document["id"])
    assert Counter(event.page for event in events if event.page) == Counter(range(1, 21))
    assert [event.data["seq"] for event in events] == list(range(1, 23))
    assert texts == {number: f"PAGE {number}" for number in range(1, 21)}


async def test_a_killed_replica_fails_no_page_and_comes_back(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, environment={"PAGEFLEET_CPU_REPLICAS": "2"}) as gateway:
        await gateway.lanes_up(2)
        before = {lane["id"] for lane in await gateway.lanes()}
        document = await gateway.post(numbered_pdf(12))
        await pages_done(gateway, document["id"], 2)
        await until(lambda: all_busy(gateway))
        victim = next(pid for pid in children(gateway.process.pid) if "app.replicas.cpu" in command_line(pid))
        os.kill(victim, signal.SIGKILL)
        end = await gateway.ended(document["id"])
        await gateway.lanes_up(2)
        after = {lane["id"] for lane in await gateway.lanes()}
    assert end["state"] == "succeeded"
    assert end["pages"]["succeeded"] == 12
    assert before == after


async def test_sigterm_ends_with_0_and_cuts_open_streams(tmp_path: Path) -> None:
    async with StandIn(slots=1, seconds=0.5) as replica, running_gateway(tmp_path, [replica.url]) as gateway:
        document = await gateway.post(numbered_pdf(50))
        streams = [asyncio.create_task(read_to_the_end(gateway, document["id"])) for _ in range(5)]
        await pages_done(gateway, document["id"], 1)
        status = await gateway.terminate()
        ends = await asyncio.gather(*streams)
    assert status == 0
    assert ends == [False] * 5  # cut: without the last chunk

    async with StandIn(slots=8) as replica, running_gateway(tmp_path, [replica.url]) as gateway:
        end = await gateway.ended(document["id"])
    assert end["pages"]["succeeded"] == 50


async def read_to_the_end(gateway: Gateway, document_id: str) -> bool:
    try:
        async for _ in gateway.follow(document_id):
            pass
    except httpx.RemoteProtocolError:
        return False
    return True


async def test_pages_in_flight_at_sigterm_end_within_the_grace_time_or_are_handed_back(tmp_path: Path) -> None:
    environment = {"PAGEFLEET_GRACE_SECONDS": "1"}
    async with StandIn(slots=2, seconds=0.1) as replica:
        replica.plan(Reply(seconds=0.5), Reply(seconds=60))
        async with running_gateway(tmp_path, [replica.url], environment) as gateway:
            document = await gateway.post(numbered_pdf(2))
            await until(lambda: replica.running == 2)
            assert await gateway.terminate() == 0
        assert len(replica.calls) == 2
        async with running_gateway(tmp_path, [replica.url]) as gateway:
            end = await gateway.ended(document["id"])
        assert end["state"] == "succeeded"
        assert len(replica.calls) == 3  # the page that ended was not read again


async def test_a_second_gateway_does_not_start_on_the_same_folder(tmp_path: Path) -> None:
    async with running_gateway(tmp_path):
        with pytest.raises(AssertionError, match="start line"):
            async with running_gateway(tmp_path):
                pass


async def test_a_dead_lane_costs_no_page(tmp_path: Path) -> None:
    async with (
        StandIn(slots=4, seconds=0.2) as one,
        StandIn(slots=4, seconds=0.2) as two,
        running_gateway(tmp_path, [one.url, two.url]) as gateway,
    ):
        await gateway.lanes_up(2)
        document = await gateway.post(numbered_pdf(40))
        await pages_done(gateway, document["id"], 4)
        await one.stop()
        end = await gateway.ended(document["id"])
    assert (end["state"], end["pages"]["succeeded"]) == ("succeeded", 40)
