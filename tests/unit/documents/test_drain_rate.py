import pytest

from app.documents.drain_rate import HALF_LIFE_SECONDS, DrainRate, seconds_to_drain


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rate(clock: Clock) -> DrainRate:
    return DrainRate(clock)


def work(rate: DrainRate, clock: Clock, pages: int, seconds_per_page: float) -> None:
    rate.note_work(True)
    for _ in range(pages):
        clock.now += seconds_per_page
        rate.note_page()
    rate.note_work(False)


def test_nothing_is_known_before_the_first_page(rate: DrainRate, clock: Clock) -> None:
    assert rate.pages_per_second == 0
    rate.note_work(True)
    clock.now += 10
    assert rate.pages_per_second == 0


def test_a_few_pages_give_their_rate_at_once(rate: DrainRate, clock: Clock) -> None:
    work(rate, clock, 5, seconds_per_page=0.5)
    assert rate.pages_per_second == pytest.approx(2, rel=0.05)


def test_idle_time_changes_nothing(rate: DrainRate, clock: Clock) -> None:
    work(rate, clock, 100, seconds_per_page=0.5)
    before = rate.pages_per_second
    clock.now += 3600
    assert rate.pages_per_second == before
    work(rate, clock, 1, seconds_per_page=0.5)
    assert rate.pages_per_second == pytest.approx(before, rel=0.01)


def test_what_was_measured_a_half_life_ago_counts_half(rate: DrainRate, clock: Clock) -> None:
    work(rate, clock, 1000, seconds_per_page=1)
    work(rate, clock, int(HALF_LIFE_SECONDS / 0.1), seconds_per_page=0.1)
    assert rate.pages_per_second == pytest.approx((1 + 10) / 2, rel=0.02)


def test_work_that_does_not_end_lowers_the_rate(rate: DrainRate, clock: Clock) -> None:
    work(rate, clock, 1000, seconds_per_page=1)
    rate.note_work(True)
    clock.now += HALF_LIFE_SECONDS
    assert rate.pages_per_second == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    ("pages", "pages_per_second", "seconds"),
    [
        (10, 0, 5),
        (10, 4, 3),
        (1, 100, 1),
        (0, 100, 1),
        (10**9, 0.001, 3600),
        (1, 1e-320, 3600),
    ],
)
def test_seconds_to_drain(pages: int, pages_per_second: float, seconds: int) -> None:
    assert seconds_to_drain(pages, pages_per_second) == seconds
