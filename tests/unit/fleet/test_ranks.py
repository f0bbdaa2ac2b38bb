"""Data-parallel ranks: one lane an engine, each request pinned, or one wide lane where the pin is not heeded."""

import asyncio
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY

from app.errors import AttemptStalled, LaneFault, LaneFull, LaneUnreachable, RankUnknown
from app.fleet import Attempt, Fleet, LaneState, LaneView, lane_id
from app.fleet.ranks import PROOFS_TO_BELIEVE, SIGHTINGS, STRAYS_TO_GIVE_UP, EngineCount, PinCheck
from tests.standins import Fault, Reply, StandIn
from tests.unit.fleet.conftest import RunFleet, any_model, page_request, until

# counting, checking


def test_another_number_of_engines_is_believed_when_seen_again() -> None:
    engines = EngineCount()
    engines.seen(4, in_use=True)
    assert engines.count == 1
    for shown in (3, 4, 1, 4):
        engines.seen(shown, in_use=True)
        assert engines.count == 1
    for _ in range(SIGHTINGS - 1):
        engines.seen(4, in_use=True)
    assert engines.count == 4


def test_the_engines_of_a_server_not_in_use_are_believed_at_once() -> None:
    engines = EngineCount()
    engines.seen(4, in_use=False)
    assert engines.count == 4
    engines.seen(0, in_use=False)  # it shows nothing
    assert engines.count == 4


def test_engines_that_stood_still_show_strays_and_proofs() -> None:
    check = PinCheck()
    check.page_read(0, [True, True])  # says nothing
    for _ in range(STRAYS_TO_GIVE_UP - 1):
        check.page_read(0, [False, True])
    assert not check.ignored
    check.page_read(1, [True, False])
    assert check.ignored
    assert check.settled


def test_a_pin_that_is_heeded_often_enough_is_trusted() -> None:
    check = PinCheck()
    for _ in range(PROOFS_TO_BELIEVE):
        assert not check.settled
        check.page_read(1, [False, True])
    assert check.settled
    assert not check.ignored


# on servers


@pytest.fixture
def no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in's counters are exact."""
    monkeypatch.setattr("app.fleet.endpoint.COUNTERS_LAG_SECONDS", 0.0)


def acquire(fleet: Fleet, rank: int | None = None) -> Attempt:
    others = {lane.id for lane in fleet.lanes() if rank is not None and lane.rank != rank}
    attempt = fleet.acquire(any_model, avoid=others)
    assert attempt is not None
    return attempt


async def read_page(fleet: Fleet, rank: int | None = None) -> None:
    with acquire(fleet, rank) as attempt:
        await attempt.complete(page_request())


def states(fleet: Fleet) -> list[LaneState]:
    return [lane.state for lane in fleet.lanes()]


def one_wide_lane(fleet: Fleet) -> bool:
    return [(lane.rank, lane.engines) for lane in fleet.lanes()] == [(None, 2)]


async def test_each_engine_is_a_lane_and_each_request_names_its_own(run_fleet: RunFleet) -> None:
    async with StandIn(ranks=3, slots=2, seconds=0.02) as server, run_fleet(server.url) as fleet:
        lanes = fleet.lanes()
        assert [(lane.id, lane.rank, lane.engines) for lane in lanes] == [
            (lane_id(server.url, rank), rank, 1) for rank in range(3)
        ]
        assert {lane.window for lane in lanes} == {2}
        attempts = [acquire(fleet) for _ in range(6)]
        assert fleet.acquire(any_model) is None
        await asyncio.gather(*(attempt.complete(page_request()) for attempt in attempts))
        for attempt in attempts:
            attempt.release()
        assert [engine.calls for engine in server.engines] == [2, 2, 2]
        assert [engine.peak for engine in server.engines] == [2, 2, 2]
        assert sorted(call.headers["x-data-parallel-rank"] for call in server.calls) == list("001122")


async def test_a_server_with_one_engine_gets_no_pin(run_fleet: RunFleet) -> None:
    async with StandIn() as server, run_fleet(server.url) as fleet:
        await read_page(fleet)
        assert "x-data-parallel-rank" not in server.calls[0].headers


async def test_each_lane_has_the_load_of_its_own_engine(run_fleet: RunFleet) -> None:
    async with StandIn(ranks=2) as server, run_fleet(server.url) as fleet:
        server.engines[1].foreign = 3
        await until(lambda: [lane.foreign for lane in fleet.lanes()] == [0, 3])


@pytest.mark.usefixtures("no_lag")
async def test_a_server_that_does_not_heed_the_pin_becomes_one_wide_lane(run_fleet: RunFleet) -> None:
    async with StandIn(ranks=2, slots=3, honours_rank=False) as server, run_fleet(server.url) as fleet:
        async with asyncio.timeout(20):
            while not one_wide_lane(fleet):
                await read_page(fleet, rank=0)
                await asyncio.sleep(0.06)  # a scrape
        (lane,) = fleet.lanes()
        assert lane.window == 6
        await until(lambda: fleet.window(any_model) == 6)
        assert REGISTRY.get_sample_value("pagefleet_lane_engines", {"lane": lane.id}) == 2
        await read_page(fleet)
        assert "x-data-parallel-rank" not in server.calls[-1].headers
        server.engines[1].foreign = 2
        await until(lambda: fleet.lanes()[0].foreign == 2)


@pytest.mark.usefixtures("no_lag")
async def test_a_server_that_heeds_the_pin_keeps_its_lanes(run_fleet: RunFleet) -> None:
    async with StandIn(ranks=2) as server, run_fleet(server.url) as fleet:
        for _ in range(PROOFS_TO_BELIEVE + STRAYS_TO_GIVE_UP):
            await read_page(fleet, rank=1)
            await asyncio.sleep(0.06)
        assert [lane.rank for lane in fleet.lanes()] == [0, 1]
        assert [engine.calls for engine in server.engines] == [0, PROOFS_TO_BELIEVE + STRAYS_TO_GIVE_UP]


async def test_pages_in_flight_on_lanes_that_go_end_in_peace(run_fleet: RunFleet) -> None:
    async with StandIn(ranks=2, seconds=0.5) as server, run_fleet(server.url) as fleet:
        with acquire(fleet, rank=1) as attempt:
            page = asyncio.create_task(attempt.complete(page_request()))
            await until(lambda: server.running)
            server.engines = server.engines[:1]
            await until(lambda: [lane.rank for lane in fleet.lanes()] == [None])
            assert (await page).finish_reason == "stop"
        assert REGISTRY.get_sample_value("pagefleet_lane_up", {"lane": attempt.lane.id}) is None


async def test_a_server_that_comes_back_with_more_engines_has_more_lanes(run_fleet: RunFleet) -> None:
    async with StandIn() as server, run_fleet(server.url) as fleet:
        before = fleet.lanes()[0].id
        server.engines = StandIn(ranks=2).engines
        await until(lambda: len(fleet.lanes()) == 2)
        assert fleet.lanes()[0].id == before
        await until(lambda: all(state.takes_pages for state in states(fleet)))
        await read_page(fleet, rank=1)
        assert server.engines[1].calls == 1


async def test_a_rank_that_is_gone_is_the_lanes_trouble_and_not_the_pages(run_fleet: RunFleet) -> None:
    async with (
        StandIn(ranks=2) as server,
        run_fleet(server.url, health_interval_seconds=60) as fleet,
    ):
        server.engines = server.engines[:1]
        with acquire(fleet, rank=1) as attempt, pytest.raises(RankUnknown):
            await attempt.complete(page_request())
        assert states(fleet) == [LaneState.PROBATION, LaneState.OPEN]


# the server is one fault domain


def lanes_of(fleet: Fleet, server: StandIn) -> Iterator[LaneView]:
    return (lane for lane in fleet.lanes() if lane.endpoint == server.url)


@pytest.mark.parametrize(
    ("reply", "error", "pages", "state"),
    [
        (Reply(fault=Fault.RESET), LaneUnreachable, 1, LaneState.OPEN),
        (Reply(status=500), LaneFault, 2, LaneState.OPEN),
    ],
)
async def test_what_the_server_suffers_all_its_lanes_do_and_no_others(
    run_fleet: RunFleet, reply: Reply, error: type[Exception], pages: int, state: LaneState
) -> None:
    async with (
        StandIn(ranks=3) as server,
        StandIn(ranks=2) as neighbour,
        run_fleet(server.url, neighbour.url, health_interval_seconds=60) as fleet,
    ):
        server.always(reply)
        lane = next(lanes_of(fleet, server)).id
        others = {other.id for other in fleet.lanes()} - {lane}
        for _ in range(pages):
            attempt = fleet.acquire(any_model, avoid=others)
            assert attempt is not None
            with attempt, pytest.raises(error):
                await attempt.complete(page_request())
        assert {lane.state for lane in lanes_of(fleet, server)} == {state}
        assert {lane.state for lane in lanes_of(fleet, neighbour)} == {LaneState.PROBATION}


async def test_a_full_server_is_full_on_every_rank(run_fleet: RunFleet) -> None:
    async with StandIn(ranks=2) as server, run_fleet(server.url) as fleet:
        server.plan(Reply(status=503, headers={"Retry-After": "60"}))
        with acquire(fleet, rank=0) as attempt, pytest.raises(LaneFull):
            await attempt.complete(page_request())
        assert fleet.acquire(any_model) is None
        assert fleet.has_lanes(any_model)


async def test_a_stall_is_a_ranks_own(run_fleet: RunFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.fleet.lane.FIRST_STALL_SHARE", 0.3 / 600)
    async with StandIn(ranks=2) as server, run_fleet(server.url) as fleet:
        server.plan(Reply(fault=Fault.HANG))
        with acquire(fleet, rank=1) as attempt:
            with pytest.raises(AttemptStalled):
                await attempt.complete(page_request())
            assert states(fleet) == [LaneState.PROBATION, LaneState.SUSPECT]
