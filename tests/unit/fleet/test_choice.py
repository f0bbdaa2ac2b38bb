from collections import Counter
from dataclasses import dataclass

import pytest

from app.fleet.choice import least_loaded, relative_slowness


@dataclass(frozen=True)
class FakeLane:
    name: str
    load: float = 0.0
    seconds_per_page: float | None = None
    remaining: float = 0.0
    has_room: bool = True

    def remaining_seconds(self, now: float) -> float:
        return self.remaining


def choose(lanes: list[FakeLane]) -> FakeLane | None:
    return least_loaded(lanes, relative_slowness([lane.seconds_per_page for lane in lanes]), now=0.0)


A, B = "a", "b"


@pytest.mark.parametrize(
    ("lanes", "chosen"),
    [
        pytest.param([FakeLane(A, 3), FakeLane(B, 2)], B, id="fewer attempts"),
        pytest.param([FakeLane(A, 2), FakeLane(B, 2.5)], A, id="other clients' requests count"),
        # (0 + 1) * 4 s against (2 + 1) * 1 s
        pytest.param([FakeLane(A, 0, 4.0), FakeLane(B, 2, 1.0)], B, id="a fast lane may hold more"),
        pytest.param([FakeLane(A, 0, 4.0), FakeLane(B, 4, 1.0)], A, id="but not any number"),
        pytest.param([FakeLane(A, 7, 1.0), FakeLane(B, 6, 1.3)], B, id="count outranks noise in speed"),
        pytest.param([FakeLane(A, 1, 1.0), FakeLane(B, 0)], B, id="a lane without history counts as average"),
        pytest.param([FakeLane(A, 2, 1.0, 1.5), FakeLane(B, 2, 1.0, 0.5)], B, id="tie: less time remains"),
        pytest.param([FakeLane(A, 2, 1.0, 1.5), FakeLane(B, 2, 1.1, 0.5)], B, id="noise in speed is a tie"),
        pytest.param([FakeLane(A, 0, has_room=False), FakeLane(B, 5)], B, id="a lane without room is none"),
    ],
)
def test_the_least_loaded_lane_for_its_speed_is_chosen(lanes: list[FakeLane], chosen: str) -> None:
    for order in (lanes, lanes[::-1]):
        lane = choose(order)
        assert lane is not None
        assert lane.name == chosen


def test_no_lane_no_choice() -> None:
    assert choose([]) is None
    assert choose([FakeLane(A, has_room=False)]) is None


def test_equal_lanes_share_the_load_at_random() -> None:
    """A fixed order would send every single page of a quiet service to the same replica."""
    lanes = [FakeLane(name) for name in "abcd"]
    chosen = Counter(lane.name for _ in range(400) if (lane := choose(lanes)))
    assert sum(chosen.values()) == 400
    assert min(chosen[name] for name in "abcd") > 40  # 100 expected; 40 is 7 standard deviations away
