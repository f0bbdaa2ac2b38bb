"""The fleet as its callers see it, on real stand-in replicas."""

import asyncio
import random
import time

import pytest
from prometheus_client import REGISTRY

from app.errors import (
    AttemptAborted,
    AttemptError,
    AttemptStalled,
    AttemptTimeout,
    LaneFault,
    LaneFull,
    LaneUnreachable,
    RequestRefused,
    StartError,
)
from app.fleet import Attempt, Fleet, LaneState, LaneView, lane_id
from app.fleet.window import START_ATTEMPTS
from app.settings import Settings
from tests.standins import Fault, Reply, StandIn
from tests.unit.fleet.conftest import RunFleet, any_model, page_request, until


def acquire(fleet: Fleet) -> Attempt:
    attempt = fleet.acquire(any_model)
    assert attempt is not None
    return attempt


async def read_page(fleet: Fleet) -> str:
    with acquire(fleet) as attempt:
        return (await attempt.complete(page_request())).text


async def fail_page(fleet: Fleet, error: type[AttemptError]) -> None:
    with acquire(fleet) as attempt, pytest.raises(error):
        await attempt.complete(page_request())


def only(fleet: Fleet) -> LaneView:
    (lane,) = fleet.lanes()
    return lane


def series(lane: str) -> dict[str, float]:
    """Values of the lane's series, by metric name and outcome or state."""
    return {
        " ".join([sample.name, *(value for name, value in sample.labels.items() if name != "lane")]): sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.labels.get("lane") == lane and not sample.name.endswith("_created")
    }


async def test_a_page_is_read_and_its_lane_known(run_fleet: RunFleet) -> None:
    async with StandIn(slots=4, text=lambda _: "Text") as replica, run_fleet(replica.url) as fleet:
        assert await read_page(fleet) == "Text"
        lane = only(fleet)
        assert lane.id == lane_id(replica.url, None)
        assert (lane.endpoint, lane.rank, lane.model) == (replica.url, None, "standin")
        assert (lane.state, lane.window, lane.inflight, lane.charged) == (LaneState.UP, 4, 0, 0)
        assert lane.seconds_per_page is not None


def test_lane_ids_are_the_same_on_every_gateway() -> None:
    assert lane_id("http://10.0.0.5:8000", None) == "b1b6c237bc22-0"
    assert lane_id("http://10.0.0.5:8000", 3) == "b1b6c237bc22-3"


# windows


async def test_the_window_is_what_the_replica_states(run_fleet: RunFleet) -> None:
    async with StandIn(slots=3) as replica, run_fleet(replica.url) as fleet:
        assert fleet.window(any_model) == fleet.free_slots(any_model) == 3
        attempts = [acquire(fleet) for _ in range(3)]
        assert fleet.acquire(any_model) is None
        assert (fleet.free_slots(any_model), fleet.window(any_model)) == (0, 3)
        attempts[0].release()
        assert fleet.free_slots(any_model) == 1
        for attempt in attempts:
            attempt.release()


async def test_a_fixed_window_outranks_what_the_replica_states(run_fleet: RunFleet) -> None:
    async with StandIn(slots=3) as replica, run_fleet(replica.url, lane_window=5) as fleet:
        assert fleet.window(any_model) == 5


async def test_a_replica_that_states_nothing_earns_the_default_window(run_fleet: RunFleet) -> None:
    async with StandIn(states_slots=False) as replica, run_fleet(replica.url) as fleet:
        allowed = [fleet.window(any_model)]
        while only(fleet).state is LaneState.PROBATION:
            await read_page(fleet)
            allowed.append(fleet.window(any_model))
        assert allowed == [1, 2, 4, 8, 16]
        assert only(fleet).window == START_ATTEMPTS


async def test_an_own_replica_has_its_window_at_once(run_fleet: RunFleet) -> None:
    async with StandIn(states_slots=False) as replica, run_fleet() as fleet:
        fleet.add_endpoint(replica.url, own=True)
        await until(lambda: fleet.has_lanes(any_model))
        assert fleet.window(any_model) == START_ATTEMPTS


# choice


async def test_pages_go_to_the_lane_with_fewest_attempts(run_fleet: RunFleet) -> None:
    async with StandIn(slots=4) as one, StandIn(slots=4) as two, run_fleet(one.url, two.url) as fleet:
        attempts = [acquire(fleet) for _ in range(8)]
        for count in range(0, 8, 2):
            assert {attempt.lane.endpoint for attempt in attempts[count : count + 2]} == {one.url, two.url}
        for attempt in attempts:
            attempt.release()


async def test_lanes_to_avoid_and_models_not_served_are_left_out(run_fleet: RunFleet) -> None:
    async with StandIn(model="a") as one, StandIn(model="b") as two, run_fleet(one.url, two.url) as fleet:
        assert fleet.models() == {"a", "b"}
        with acquire(fleet) as attempt:
            other = fleet.acquire(any_model, avoid={attempt.lane.id})
            assert other is not None
            with other:
                assert other.lane.id != attempt.lane.id
                assert fleet.acquire(any_model, avoid={attempt.lane.id, other.lane.id}) is None
        for _ in range(10):
            chosen = fleet.acquire(lambda model: model == "b")
            assert chosen is not None
            with chosen:
                assert chosen.lane.model == "b"
        assert fleet.acquire(lambda model: model == "c") is None
        assert not fleet.has_lanes(lambda model: model == "c")


async def test_a_bad_answer_counts_as_load_but_not_against_the_window(run_fleet: RunFleet) -> None:
    async with StandIn(slots=2) as one, StandIn(slots=2) as two, run_fleet(one.url, two.url) as fleet:
        with acquire(fleet) as attempt:
            await attempt.complete(page_request())
            attempt.fail("answer_repeats")
            bad = attempt.lane.id
        for _ in range(10):
            with acquire(fleet) as attempt:
                assert attempt.lane.id != bad
        assert fleet.free_slots(any_model) == 4
        assert series(bad)["pagefleet_attempts_total answer_repeats"] == 1


async def test_a_lane_that_fails_fast_does_not_draw_the_pages(run_fleet: RunFleet) -> None:
    async with (
        StandIn(slots=4) as bad,
        StandIn(slots=4, seconds=0.005) as good,
        run_fleet(bad.url, good.url) as fleet,
    ):
        bad.always(Reply(status=400))
        errors = 0
        for _ in range(30):
            with acquire(fleet) as attempt:
                try:
                    await attempt.complete(page_request())
                except RequestRefused:
                    errors += 1
        assert len(bad.calls) == errors <= 4


async def test_requests_of_other_clients_count_as_load(run_fleet: RunFleet) -> None:
    async with StandIn(slots=8) as busy, StandIn(slots=8) as idle, run_fleet(busy.url, idle.url) as fleet:
        busy.foreign = 4
        await until(lambda: [lane.foreign for lane in fleet.lanes()] == [4, 0])
        attempts = [acquire(fleet) for _ in range(4)]
        assert {attempt.lane.endpoint for attempt in attempts} == {idle.url}
        for attempt in attempts:
            attempt.release()


async def test_numbers_that_can_no_longer_be_read_are_forgotten_and_close_nothing(run_fleet: RunFleet) -> None:
    async with StandIn(slots=8) as replica, run_fleet(replica.url) as fleet:
        for status in (500, 0):  # an error, then no answer at all
            replica.metrics_status = 200
            replica.foreign = 4
            await until(lambda: only(fleet).foreign == 4)
            replica.metrics_status = status
            await until(lambda: only(fleet).foreign == 0)
            assert only(fleet).window == 8
            assert await read_page(fleet)


async def test_an_endpoint_that_hangs_holds_up_no_others_probes(
    run_fleet: RunFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.fleet.probe.PROBE_SECONDS", 60)
    async with StandIn() as silent, StandIn() as other, run_fleet(silent.url, other.url) as fleet:
        silent.health_status = silent.metrics_status = 0
        other.foreign = 4
        await until(lambda: sorted(lane.foreign for lane in fleet.lanes()) == [0, 4])


# faults


async def test_a_dead_replica_is_opened_by_the_first_attempt_and_comes_back_with_the_server(
    run_fleet: RunFleet,
) -> None:
    replica = StandIn()
    async with replica, run_fleet(replica.url, health_interval_seconds=0.2) as fleet:
        await read_page(fleet)
        with acquire(fleet) as attempt:
            await replica.stop()
            with pytest.raises(LaneUnreachable):
                await attempt.complete(page_request())
            assert attempt.lane.state is LaneState.OPEN
        assert fleet.acquire(any_model) is None
        assert not fleet.has_lanes(any_model)

        await replica.start()
        await until(lambda: only(fleet).state is LaneState.HALF_OPEN)
        with acquire(fleet) as attempt:
            assert fleet.acquire(any_model) is None  # exactly one attempt decides
            await attempt.complete(page_request())
        assert only(fleet).state is LaneState.PROBATION
        await read_page(fleet)
        assert only(fleet).state is LaneState.UP


async def test_a_probe_finds_a_dead_replica_without_any_page(run_fleet: RunFleet) -> None:
    replica = StandIn()
    async with replica, run_fleet(replica.url) as fleet:
        await replica.stop()
        await until(lambda: only(fleet).state is LaneState.OPEN)


async def test_a_replica_that_says_its_engine_is_dead_is_opened(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(replica.url) as fleet:
        replica.health_status = 503
        await until(lambda: only(fleet).state is LaneState.OPEN)


async def test_a_server_without_a_health_route_is_healthy(run_fleet: RunFleet) -> None:
    async with StandIn() as replica:
        replica.health_status = 404
        async with run_fleet(replica.url) as fleet:
            assert fleet.has_lanes(any_model)


async def test_two_server_errors_in_a_row_open_a_lane_and_refusals_never(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(replica.url) as fleet:
        replica.plan(*[Reply(status=400)] * 5, Reply(status=500), Reply(), Reply(status=500), Reply(status=500))
        for _ in range(5):
            await fail_page(fleet, RequestRefused)
        await fail_page(fleet, LaneFault)
        await read_page(fleet)
        await fail_page(fleet, LaneFault)
        assert fleet.has_lanes(any_model)
        await fail_page(fleet, LaneFault)
        assert only(fleet).state is LaneState.OPEN


async def test_a_full_lane_gets_nothing_until_its_retry_after_is_over(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(replica.url) as fleet:
        replica.plan(Reply(status=503, headers={"Retry-After": "1"}))
        changed = asyncio.Event()
        started = time.monotonic()
        await fail_page(fleet, LaneFull)
        assert fleet.acquire(any_model) is None
        assert fleet.has_lanes(any_model)
        assert only(fleet).charged == 0
        fleet.on_change(changed.set)
        await until(changed.is_set)
        assert time.monotonic() - started >= 1
        assert await read_page(fleet)


async def test_an_aborted_answer_makes_the_lane_suspect_until_it_proves_itself(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(replica.url) as fleet:
        replica.plan(Reply(finish_reason="abort"))
        with acquire(fleet) as attempt:
            with pytest.raises(AttemptAborted):
                await attempt.complete(page_request())
            assert attempt.lane.state is LaneState.SUSPECT
        await until(lambda: only(fleet).state is LaneState.HALF_OPEN)
        await read_page(fleet)
        assert only(fleet).state is LaneState.PROBATION


async def test_an_attempt_ends_at_its_time_limit(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(replica.url, page_seconds=0.3) as fleet:
        replica.plan(Reply(chunks=10_000, text="x" * 10_000, chunk_seconds=0.01))
        await fail_page(fleet, AttemptTimeout)
        await until(lambda: replica.disconnects == 1)


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of a second of silence is a stall, with the usual settings."""
    monkeypatch.setattr("app.fleet.lane.FIRST_STALL_SHARE", 0.3 / 600)


@pytest.mark.usefixtures("short_patience")
async def test_a_silent_attempt_on_a_frozen_engine_stalls(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(replica.url) as fleet:
        replica.plan(Reply(fault=Fault.HANG))
        with acquire(fleet) as attempt:
            with pytest.raises(AttemptStalled):
                await attempt.complete(page_request())
            assert attempt.lane.state is LaneState.SUSPECT
            assert attempt.lane.charged == 1
        await until(lambda: replica.disconnects == 1)


@pytest.mark.usefixtures("short_patience")
async def test_a_stall_that_its_caller_wants_to_hear_of_does_not_end_the_attempt(run_fleet: RunFleet) -> None:
    """The lane gets no further pages, and is in probation again if the answer comes after all."""
    async with StandIn(states_slots=False) as replica, run_fleet(replica.url) as fleet:
        replica.metrics_status = 500  # nobody sees that it works
        replica.plan(Reply(seconds=0.6))
        stalls: list[LaneState] = []
        with acquire(fleet) as attempt:
            page = asyncio.create_task(attempt.complete(page_request(), lambda: stalls.append(attempt.lane.state)))
            await until(lambda: stalls)
            assert stalls == [LaneState.SUSPECT]
            assert fleet.acquire(any_model) is None
            assert series(attempt.lane.id)["pagefleet_lane_stalls_total"] == 1
            assert (await page).finish_reason == "stop"
            assert attempt.lane.state is LaneState.PROBATION
        assert (len(stalls), replica.disconnects) == (1, 0)


@pytest.mark.usefixtures("short_patience")
async def test_a_silent_attempt_on_an_engine_that_steps_goes_on(run_fleet: RunFleet) -> None:
    """Its silence is longer than the limit; only the step counter tells it from a hung one."""
    async with StandIn(seconds=0.6) as replica, run_fleet(replica.url) as fleet:
        assert await read_page(fleet)


async def test_a_hung_server_is_suspect_by_its_probes(run_fleet: RunFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.fleet.probe.PROBE_SECONDS", 0.05)
    async with StandIn() as replica, run_fleet(replica.url) as fleet:
        replica.health_status = 0
        await until(lambda: only(fleet).state is LaneState.SUSPECT)


# the supervisor's word


async def test_a_death_that_the_supervisor_saw_opens_at_once_and_its_restart_needs_no_waiting(
    run_fleet: RunFleet,
) -> None:
    async with StandIn() as replica, run_fleet(replica.url, health_interval_seconds=60) as fleet:
        await read_page(fleet)
        fleet.note_down(replica.url)
        assert not fleet.has_lanes(any_model)
        fleet.note_up(replica.url)
        await until(lambda: fleet.has_lanes(any_model))
        assert await read_page(fleet)


async def test_a_replica_that_comes_back_may_serve_another_model(run_fleet: RunFleet) -> None:
    async with StandIn(model="old") as replica, run_fleet(replica.url) as fleet:
        replica.model = "new"
        fleet.note_down(replica.url)
        fleet.note_up(replica.url)
        await until(lambda: fleet.has_lanes(lambda model: model == "new"))
        assert fleet.models() == {"new"}


# endpoints


async def test_an_endpoint_that_is_not_there_yet_joins_when_it_comes(run_fleet: RunFleet) -> None:
    replica = StandIn()
    await replica.start()
    await replica.stop()
    async with run_fleet(replica.url, wait=False) as fleet:
        await asyncio.sleep(0.1)
        assert only(fleet).state is LaneState.STARTING
        async with replica:
            await until(lambda: fleet.has_lanes(any_model))


async def test_a_removed_endpoint_ends_its_attempts_in_peace_and_leaves_no_series(run_fleet: RunFleet) -> None:
    async with StandIn(seconds=0.2) as replica, run_fleet(replica.url) as fleet:
        with acquire(fleet) as attempt:
            page = asyncio.create_task(attempt.complete(page_request()))
            await until(lambda: replica.running)
            fleet.remove_endpoint(replica.url)
            assert fleet.lanes() == []
            assert fleet.acquire(any_model) is None
            assert (await page).finish_reason == "stop"
        assert series(attempt.lane.id) == {}


async def test_an_endpoint_added_again_is_a_new_lane(run_fleet: RunFleet) -> None:
    async with StandIn(slots=1) as replica, run_fleet(replica.url) as fleet:
        with acquire(fleet) as old:
            fleet.remove_endpoint(replica.url)
            fleet.add_endpoint(replica.url)
            await until(lambda: fleet.has_lanes(any_model))
            assert old.lane.id == only(fleet).id
            assert only(fleet).inflight == 0
            with acquire(fleet):
                old.release()
                assert only(fleet).inflight == 1
                assert series(only(fleet).id)["pagefleet_lane_inflight_attempts"] == 1
        assert only(fleet).inflight == 0


async def test_adding_twice_adds_once_and_unknown_urls_are_ignored(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(replica.url) as fleet:
        fleet.add_endpoint(replica.url)
        for act in (fleet.remove_endpoint, fleet.note_down, fleet.note_up):
            act("http://elsewhere:1")
        assert len(fleet.lanes()) == 1


async def test_an_endpoint_without_host_does_not_start(run_fleet: RunFleet) -> None:
    fleet = Fleet(Settings(endpoints=("http://:8000",)))
    with pytest.raises(StartError):
        await fleet.start()


async def test_credentials_in_an_endpoint_are_used_and_never_shown(run_fleet: RunFleet) -> None:
    async with StandIn() as replica:
        url = replica.url.replace("http://", "http://user:secret@")
        async with run_fleet(url) as fleet:
            await read_page(fleet)
            assert "secret" not in repr(fleet.lanes())
            assert replica.calls[0].headers["authorization"].startswith("Basic ")


async def test_a_server_that_refuses_our_key_takes_no_pages(run_fleet: RunFleet) -> None:
    """Every page sent there would be refused for good."""
    async with StandIn() as replica:
        replica.models_status = 401
        async with run_fleet(replica.url, wait=False) as fleet:
            await asyncio.sleep(0.2)
            assert only(fleet).state is LaneState.STARTING
            replica.models_status = 200
            await until(lambda: fleet.has_lanes(any_model))


# metrics and accounting


async def test_metrics_follow_the_lane(run_fleet: RunFleet) -> None:
    async with StandIn(slots=4) as replica, run_fleet(replica.url) as fleet:
        lane = only(fleet).id
        before = series(lane)
        assert before["pagefleet_lane_up"] == 1
        assert before["pagefleet_lane_window_attempts"] == 4
        with acquire(fleet) as attempt:
            assert series(lane)["pagefleet_lane_inflight_attempts"] == 1
            await attempt.complete(page_request())
        replica.plan(Reply(status=500))
        await fail_page(fleet, LaneFault)
        acquire(fleet).release()
        fleet.note_down(replica.url)
        after = series(lane)
        assert after["pagefleet_lane_up"] == after["pagefleet_lane_inflight_attempts"] == 0
        outcomes = {name: value for name, value in after.items() if "attempts_total" in name}
        assert outcomes == {
            "pagefleet_attempts_total succeeded": 1,
            "pagefleet_attempts_total lane_fault": 1,
            "pagefleet_attempts_total cancelled": 1,
        }
        assert after["pagefleet_lane_transitions_total open"] == 1


async def test_a_slot_given_back_and_a_lane_that_comes_up_are_told(run_fleet: RunFleet) -> None:
    async with StandIn() as replica, run_fleet(wait=False) as fleet:
        changes: list[bool] = []
        fleet.on_change(lambda: changes.append(fleet.free_slots(any_model) > 0))
        fleet.add_endpoint(replica.url)
        await until(lambda: True in changes)
        with acquire(fleet):
            changes.clear()
        assert changes == [True]


async def test_stopping_ends_the_attempts_in_flight(run_fleet: RunFleet) -> None:
    async with StandIn(seconds=60) as replica, run_fleet(replica.url) as fleet:
        page = asyncio.create_task(fail_page(fleet, LaneUnreachable))
        await until(lambda: replica.running)
        with acquire(fleet) as not_begun:
            await fleet.stop()
            with pytest.raises(LaneUnreachable):
                await not_begun.complete(page_request())
        await page
        assert fleet.lanes() == []
        await until(lambda: replica.disconnects == 1)


async def test_releasing_twice_releases_once(run_fleet: RunFleet) -> None:
    async with StandIn(slots=2) as replica, run_fleet(replica.url) as fleet:
        with acquire(fleet) as attempt:
            attempt.release()
            attempt.release()
            with acquire(fleet):
                assert only(fleet).inflight == 1


async def test_no_slot_leaks_whatever_happens_to_hundreds_of_attempts(run_fleet: RunFleet) -> None:
    """At any moment the attempts in flight are those alive; at the end there is none, at the replicas neither."""
    dice = random.Random(7)
    faults = [
        Reply(fault=Fault.RESET),
        Reply(fault=Fault.CUT),
        Reply(fault=Fault.HANG),
        Reply(fault=Fault.IN_BAND_ERROR),
        Reply(status=400),
        Reply(status=500),
        Reply(status=429, headers={"Retry-After": "0"}),
        Reply(finish_reason="abort"),
    ]
    alive = 0

    async def one_page(fleet: Fleet) -> None:
        nonlocal alive
        while (attempt := fleet.acquire(any_model)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        with attempt:
            alive += 1
            try:
                await attempt.complete(page_request())
            except AttemptError:
                pass
            finally:
                alive -= 1

    async with StandIn(slots=8) as one, StandIn(slots=8) as two, run_fleet(one.url, two.url) as fleet:
        for replica in (one, two):
            replica.plan(*(dice.choice([*faults, Reply(seconds=0.01), Reply(seconds=0.01)]) for _ in range(100)))
        pages = [asyncio.create_task(one_page(fleet)) for _ in range(200)]
        while pending := [page for page in pages if not page.done()]:
            assert sum(lane.inflight for lane in fleet.lanes()) == alive <= 16
            dice.choice(pending).cancel()
            await asyncio.sleep(0.005)
        assert alive == 0
        assert [lane.inflight for lane in fleet.lanes()] == [0, 0]
        await until(lambda: one.present == two.present == 0)
