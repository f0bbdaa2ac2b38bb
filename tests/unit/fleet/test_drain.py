"""Drain and resume of lanes by command, and what a lane says of itself."""

import asyncio
from datetime import UTC, datetime

import pytest

from app.errors import LaneFault, LaneUnknown
from app.fleet import Fleet, LaneState, LaneView
from app.fleet.desired import DesiredHere
from app.settings import Settings
from tests.standins import Reply, StandIn
from tests.unit.fleet.conftest import RunFleet, any_model, page_request, until


def only(fleet: Fleet) -> LaneView:
    (lane,) = fleet.lanes()
    return lane


async def read_page(fleet: Fleet) -> None:
    attempt = fleet.acquire(any_model)
    assert attempt is not None
    with attempt:
        await attempt.complete(page_request())


async def test_a_drained_lane_ends_its_pages_and_gets_no_new_ones(run_fleet: RunFleet) -> None:
    async with StandIn(seconds=0.2) as drained, StandIn() as other, run_fleet(drained.url, other.url) as fleet:
        lane = next(lane for lane in fleet.lanes() if lane.endpoint == drained.url)
        attempt = fleet.acquire(any_model, avoid={view.id for view in fleet.lanes()} - {lane.id})
        assert attempt is not None
        with attempt:
            page = asyncio.create_task(attempt.complete(page_request()))
            await until(lambda: drained.running)
            await fleet.drain(lane.id)
            assert attempt.lane.state is LaneState.DRAINING
            assert attempt.lane.reason == "drained by command"
            assert (await page).finish_reason == "stop"
        for _ in range(5):
            await read_page(fleet)
        await asyncio.sleep(0.2)  # some probes
        assert (len(drained.calls), len(other.calls)) == (1, 5)
        assert attempt.lane.state is LaneState.DRAINING
        assert attempt.lane.attempts == 1


async def test_a_resumed_lane_begins_anew_and_at_once(run_fleet: RunFleet) -> None:
    async with StandIn(states_slots=False) as replica, run_fleet(replica.url, health_interval_seconds=60) as fleet:
        await read_page(fleet)
        await fleet.drain(only(fleet).id)
        assert not fleet.has_lanes(any_model)
        replica.model = "newer"
        await fleet.resume(only(fleet).id)
        await until(lambda: only(fleet).state is LaneState.PROBATION)
        assert fleet.models() == {"newer"}
        assert fleet.window(any_model) == 1


async def test_ranks_are_drained_one_by_one(run_fleet: RunFleet) -> None:
    async with StandIn(ranks=2) as server, run_fleet(server.url) as fleet:
        first, second = fleet.lanes()
        await fleet.drain(first.id)
        for _ in range(4):
            await read_page(fleet)
        assert [engine.calls for engine in server.engines] == [0, 4]
        await fleet.drain(second.id)
        assert fleet.acquire(any_model) is None


async def test_what_is_wanted_holds_for_lanes_that_come_later(run_fleet: RunFleet) -> None:
    async with StandIn(ranks=2) as server:
        async with run_fleet(server.url) as fleet:
            second = fleet.lanes()[1].id
        desired = DesiredHere()
        await desired.drain(second)
        fleet = Fleet(Settings(endpoints=(server.url,), health_interval_seconds=0.05), desired)
        await fleet.start()
        try:
            await until(lambda: len(fleet.lanes()) == 2)
            await until(lambda: fleet.lanes()[0].state.takes_pages)
            assert fleet.lanes()[1].state is LaneState.DRAINING
            await desired.resume(second)  # by another gateway
            await until(lambda: fleet.lanes()[1].state.takes_pages)
        finally:
            await fleet.stop()


async def test_there_is_no_lane_to_drain_of_an_unknown_id(run_fleet: RunFleet) -> None:
    async with run_fleet() as fleet:
        for act in (fleet.drain, fleet.resume):
            with pytest.raises(LaneUnknown):
                await act("0123456789ab-0")


async def test_a_lane_says_why_it_takes_no_pages_and_since_when(run_fleet: RunFleet) -> None:
    before = datetime.now(UTC)
    replica = StandIn()
    await replica.start()
    await replica.stop()
    async with run_fleet(replica.url, wait=False) as fleet:
        assert (only(fleet).state, only(fleet).reason) == (LaneState.STARTING, "not probed yet")
        await until(lambda: only(fleet).reason == "the connection is refused or breaks")
        async with replica:
            await until(lambda: only(fleet).state is LaneState.PROBATION)
            assert only(fleet).reason == "probe passed"
            since = only(fleet).since
            assert before < since <= datetime.now(UTC)
            replica.health_status = 503
            await until(lambda: only(fleet).state is LaneState.OPEN)
            assert only(fleet).reason == "/health answers 503"
            assert only(fleet).since > since


async def test_a_lane_counts_its_attempts_and_failures(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(replica.url) as fleet:
        await read_page(fleet)
        replica.plan(Reply(status=500))
        with pytest.raises(LaneFault):
            await read_page(fleet)
        attempt = fleet.acquire(any_model)
        assert attempt is not None
        attempt.release()  # cancelled: no failure
        lane = only(fleet)
        assert (lane.attempts, lane.failures, lane.charged) == (3, 1, 1)
