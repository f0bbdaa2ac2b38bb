"""How lanes are divided among gateways."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from prometheus_client import REGISTRY

from app.fleet import Fleet
from app.fleet.shares import divide, lane_slots
from tests.standins import Reply, StandIn
from tests.unit.fleet.conftest import RunFleet, any_model, page_request, until

EAGER = 1_000


@pytest.mark.parametrize(
    ("total", "wants", "parts"),
    [
        (32, {"a": EAGER, "b": EAGER}, {"a": 16, "b": 16}),
        (32, {"a": 3, "b": EAGER}, {"a": 3, "b": 29}),
        (32, {"a": 3, "b": 40, "c": 40}, {"a": 3, "b": 14, "c": 15}),
        (32, {"a": 0, "b": 0}, {"a": 16, "b": 16}),
        (32, {"a": 4, "b": 8}, {"a": 14, "b": 18}),
        (1, {"a": EAGER, "b": EAGER, "c": EAGER}, {"a": 0, "b": 0, "c": 1}),
        (1, {"a": EAGER, "b": 0, "c": 0}, {"a": 1, "b": 0, "c": 0}),
        (0, {"a": EAGER, "b": 0}, {"a": 0, "b": 0}),
    ],
)
def test_parts_are_max_min_fair_and_what_nobody_wants_comes_on_top(
    total: int, wants: dict[str, int], parts: dict[str, int]
) -> None:
    assert divide(total, wants) == parts


def situations() -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Windows of lanes and wants of gateways, the same at every run."""
    dice = random.Random(7)
    for _ in range(300):
        windows = {f"lane {n}": dice.choice([0, 1, 1, 2, 4, 16, 17]) for n in range(dice.choice([1, 2, 5, 64]))}
        wants = {f"gateway {n}": dice.choice([0, 1, 3, 20, EAGER]) for n in range(dice.choice([2, 3, 4, 9]))}
        yield windows, wants


def of(gateway: str, slots: Mapping[str, Mapping[str, int]]) -> int:
    return sum(lane[gateway] for lane in slots.values())


def test_no_slot_is_given_to_two_gateways_and_none_to_nobody() -> None:
    for windows, wants in situations():
        slots = lane_slots(windows, wants)
        assert {lane: sum(of_lane.values()) for lane, of_lane in slots.items()} == windows
        assert all(part >= 0 for of_lane in slots.values() for part in of_lane.values())


def test_no_slot_is_idle_that_some_gateway_wants() -> None:
    for windows, wants in situations():
        slots = lane_slots(windows, wants)
        in_use = sum(min(want, of(gateway, slots)) for gateway, want in wants.items())
        assert in_use == min(sum(windows.values()), sum(wants.values()))


def test_a_gateway_gets_less_than_another_only_if_it_wants_no_more() -> None:
    for windows, wants in situations():
        slots = lane_slots(windows, wants)
        parts = {gateway: of(gateway, slots) for gateway in wants}
        assert all(parts[gateway] >= min(want, max(parts.values()) - 1) for gateway, want in wants.items())


def test_every_gateway_works_out_the_same() -> None:
    for windows, wants in situations():
        backwards = lane_slots(dict(reversed(windows.items())), dict(reversed(wants.items())))
        assert lane_slots(windows, wants) == backwards


def test_each_gateway_has_the_same_part_of_every_lane() -> None:
    slots = lane_slots({f"lane {n}": 16 for n in range(64)}, {"a": EAGER, "b": EAGER, "c": EAGER})
    assert {part for lane in slots.values() for part in lane.values()} <= {5, 6}


def test_a_lane_that_goes_moves_few_others() -> None:
    wants = dict.fromkeys("abcd", EAGER)
    windows = {f"lane {n}": 1 for n in range(64)}
    before = lane_slots(windows, wants)
    after = lane_slots({lane: window for lane, window in windows.items() if lane != "lane 7"}, wants)
    assert sum(before[lane] != slots for lane, slots in after.items()) <= 16


# in a fleet


@dataclass
class Neighbours:
    """What the others want is set by the test."""

    told: dict[str, int] = field(default_factory=dict)
    owner: str = "me"

    def wants(self, pool: str) -> Mapping[str, int]:
        assert pool == "standins"
        return self.told


def shared(fleet: Fleet, **wants: int) -> Neighbours:
    neighbours = Neighbours(wants)
    fleet.share_with(neighbours, lambda _: "standins")
    return neighbours


async def test_a_gateway_that_is_alone_has_every_lane_as_a_whole(run_fleet: RunFleet) -> None:
    async with StandIn(slots=4) as replica, run_fleet(replica.url) as fleet:
        shared(fleet, me=0)
        assert fleet.window(any_model) == fleet.capacity(any_model) == 4


async def test_a_gateway_keeps_to_its_share_and_follows_what_is_wanted(run_fleet: RunFleet) -> None:
    async with StandIn(slots=4) as replica, run_fleet(replica.url) as fleet:
        neighbours = shared(fleet, me=EAGER, other=EAGER)
        attempts = [fleet.acquire(any_model) for _ in range(3)]
        assert [attempt is not None for attempt in attempts] == [True, True, False]
        assert (fleet.window(any_model), fleet.free_slots(any_model), fleet.capacity(any_model)) == (2, 0, 4)
        assert REGISTRY.get_sample_value("pagefleet_lane_share_attempts", {"lane": fleet.lanes()[0].id}) == 2
        woken: list[bool] = []
        fleet.on_change(lambda: woken.append(True))
        neighbours.told["other"] = 1
        fleet.reshare()
        assert (fleet.window(any_model), fleet.free_slots(any_model)) == (3, 1)
        assert woken


async def test_shares_follow_the_lanes(run_fleet: RunFleet) -> None:
    async with StandIn(slots=4) as first, StandIn(slots=4) as second, run_fleet(first.url) as fleet:
        shared(fleet, me=EAGER, other=EAGER)
        fleet.add_endpoint(second.url)
        await until(lambda: fleet.window(any_model) == 4)
        await second.stop()
        await until(lambda: fleet.window(any_model) == 2)


async def test_replicas_of_this_gateway_are_not_shared(run_fleet: RunFleet) -> None:
    async with StandIn(slots=4) as replica, run_fleet() as fleet:
        fleet.add_endpoint(replica.url, own=True)
        shared(fleet, me=EAGER, other=EAGER)
        await until(lambda: fleet.window(any_model) == 4)


async def test_a_page_that_one_lane_has_failed_gets_to_another_though_that_is_not_shared(run_fleet: RunFleet) -> None:
    async with StandIn(slots=1) as one, StandIn(slots=1) as two, run_fleet(one.url, two.url) as fleet:
        shared(fleet, me=EAGER, other=EAGER)
        failed = fleet.acquire(any_model)
        assert failed is not None
        failed.release()
        bad = {failed.lane.id}
        assert fleet.window(any_model) == 1
        assert fleet.has_lanes(any_model, avoid=bad)
        other = fleet.acquire(any_model, avoid=bad)
        assert other is not None
        assert other.lane.id not in bad
        assert fleet.acquire(any_model, avoid=bad) is None  # one at a time


async def test_a_gateway_without_a_share_ends_what_it_has_claimed_one_by_one(run_fleet: RunFleet) -> None:
    async with StandIn(slots=4) as replica, run_fleet(replica.url) as fleet:
        shared(fleet, me=0, other=EAGER)
        assert fleet.window(any_model) == 0
        replica.plan(Reply())
        attempt = fleet.acquire(any_model)
        assert attempt is not None
        assert fleet.acquire(any_model) is None
        with attempt:
            await attempt.complete(page_request())
        assert fleet.acquire(any_model) is not None
