import pytest

from app.errors import AttemptStalled, LaneFault, LaneFull, LaneUnreachable
from app.fleet.client import open_client
from app.fleet.lane import Lane
from tests.unit.fleet.conftest import until


@pytest.fixture
def lane() -> Lane:
    return Lane(
        "http://replica:8000",
        shown="http://replica:8000",
        client=open_client("http://replica:8000", api_key=None),
        own=True,
        fixed_window=4,
        page_seconds=600,
        on_change=lambda: None,
        on_capacity=lambda: None,
    )


@pytest.mark.parametrize(
    ("page_times", "limit"),
    [
        pytest.param([], 150, id="a quarter of an attempt's time before the first page"),
        pytest.param([1], 20, id="never under 20 s"),
        pytest.param([30], 120, id="four page times"),
        pytest.param([300], 600, id="never over an attempt's time"),
    ],
)
def test_the_silence_that_is_a_stall(lane: Lane, page_times: list[float], limit: float) -> None:
    for seconds in page_times:
        lane.succeeded(0.0, seconds)
    assert lane.stall_seconds == limit


def test_seconds_per_page_follow_the_pages(lane: Lane) -> None:
    lane.succeeded(0.0, 1.0)
    assert lane.seconds_per_page == 1.0
    lane.succeeded(0.0, 2.0)
    assert lane.seconds_per_page == pytest.approx(1.2)
    for _ in range(30):
        lane.succeeded(0.0, 2.0)
    assert lane.seconds_per_page == pytest.approx(2.0, rel=0.01)


async def test_charged_failures_are_load_for_a_while(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.fleet.lane.CHARGE_SECONDS", 0.05)
    for error in (LaneFault(), AttemptStalled(), LaneUnreachable(), LaneFull(retry_after=0.0)):
        lane.failed(error)
    assert lane.load == 2  # a lane that is gone or full is not chosen anyway
    await until(lambda: lane.load == 0)
