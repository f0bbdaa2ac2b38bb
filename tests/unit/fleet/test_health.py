from collections.abc import Callable

import pytest

from app.fleet.health import FAULTS_TO_OPEN, MAX_OPEN_SECONDS, MISSED_TO_SUSPECT, OPEN_SECONDS, Health, LaneState

Event = Callable[[Health], object]

WINDOW = 8
AFTER_OPEN = OPEN_SECONDS * 1.2
"""Later than the first open time with its jitter."""


def passed(now: float = 0.0) -> Event:
    return lambda health: health.probe_passed(now)


def disconnected(now: float = 0.0) -> Event:
    return lambda health: health.disconnected(now, "refused")


def fault(now: float = 0.0) -> Event:
    return lambda health: health.fault(now, "500")


def doubt(now: float = 0.0) -> Event:
    return lambda health: health.doubt(now, "stalled")


def missed(health: Health) -> None:
    health.probe_missed()


def page(health: Health) -> None:
    health.page_read(WINDOW)


def restarted(health: Health) -> None:
    health.restarted()


def drained(health: Health) -> None:
    health.drained("drained by command")


def resumed(health: Health) -> None:
    health.resumed()


UP: list[Event] = [passed(), page]
FAULTS: list[Event] = [fault()] * FAULTS_TO_OPEN
MISSES: list[Event] = [missed] * MISSED_TO_SUSPECT


def walk(*events: Event, slow_start: bool = False) -> Health:
    health = Health(lambda state, reason: None, slow_start=slow_start)
    for event in events:
        event(health)
    return health


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([], LaneState.STARTING),
        ([disconnected(), missed, fault()], LaneState.STARTING),
        ([passed()], LaneState.PROBATION),
        (UP, LaneState.UP),
        # a connection refused or reset opens at once, faults of the lane after two in a row
        ([*UP, disconnected()], LaneState.OPEN),
        ([passed(), disconnected()], LaneState.OPEN),
        ([*UP, fault()], LaneState.UP),
        ([*UP, *FAULTS], LaneState.OPEN),
        ([*UP, fault(), page, fault()], LaneState.UP),
        # silence
        ([*UP, missed, missed, passed(), missed], LaneState.UP),
        ([*UP, *MISSES], LaneState.SUSPECT),
        ([*UP, doubt()], LaneState.SUSPECT),
        ([*UP, doubt(), passed()], LaneState.HALF_OPEN),
        ([*UP, doubt(), disconnected()], LaneState.OPEN),
        ([*UP, doubt(), page], LaneState.PROBATION),
        # recovery: early by two passing probes in a row after a failed connection, else after the open time and a probe
        ([*UP, disconnected(), passed()], LaneState.OPEN),
        ([*UP, disconnected(), passed(), passed()], LaneState.HALF_OPEN),
        ([*UP, disconnected(), passed(), missed, passed()], LaneState.OPEN),
        ([*UP, disconnected(), passed(), disconnected(), passed()], LaneState.OPEN),
        ([*UP, disconnected(), passed(AFTER_OPEN)], LaneState.HALF_OPEN),
        ([*UP, *FAULTS, passed(), passed(), passed()], LaneState.OPEN),
        ([*UP, *FAULTS, passed(AFTER_OPEN)], LaneState.HALF_OPEN),
        # attempts that end after the lane was opened change nothing
        ([*UP, disconnected(), page], LaneState.OPEN),
        # half-open: one attempt decides
        ([*UP, doubt(), passed(), page], LaneState.PROBATION),
        ([*UP, doubt(), passed(), fault()], LaneState.OPEN),
        ([*UP, doubt(), passed(), doubt()], LaneState.OPEN),
        ([*UP, doubt(), passed(), disconnected()], LaneState.OPEN),
        # a new process, a drained lane
        ([*UP, disconnected(), restarted], LaneState.STARTING),
        ([*UP, disconnected(), restarted, passed()], LaneState.PROBATION),
        ([*UP, drained, passed(), page, disconnected(), doubt(), restarted, *MISSES, *FAULTS], LaneState.DRAINING),
        ([*UP, drained, resumed], LaneState.STARTING),
        ([*UP, drained, resumed, passed()], LaneState.PROBATION),
        ([*UP, resumed], LaneState.UP),
    ],
)
def test_state_after_events(events: list[Event], state: LaneState) -> None:
    assert walk(*events).state is state


def open_seconds(health: Health, opened_at: float) -> float:
    """Whole seconds that an open lane stays so although its probes pass."""
    seconds = 0
    while health.state is LaneState.OPEN:
        seconds += 1
        health.probe_passed(opened_at + seconds)
    return seconds


def test_open_time_doubles_to_its_limit_until_the_lane_is_up_again() -> None:
    health = walk(*UP, *FAULTS)
    now, expected = 0.0, OPEN_SECONDS
    for _ in range(12):
        assert expected <= open_seconds(health, now) <= expected * 1.1 + 1
        now, expected = now + 1000, min(MAX_OPEN_SECONDS, expected * 2)
        health.fault(now, "500")
    open_seconds(health, now)
    page(health)
    page(health)
    assert health.state is LaneState.UP
    for event in FAULTS:
        event(health)
    assert open_seconds(health, 0.0) <= OPEN_SECONDS * 1.1 + 1


def test_attempts_that_fail_together_open_a_lane_once() -> None:
    health = walk(*UP, *[disconnected()] * 16)
    assert open_seconds(health, 0.0) <= OPEN_SECONDS * 1.1 + 1


def test_slow_start_doubles_the_window_with_each_page_until_it_is_full() -> None:
    health = walk(passed(), slow_start=True)
    allowed = [health.allowed(WINDOW)]
    while health.state is not LaneState.UP:
        page(health)
        allowed.append(health.allowed(WINDOW))
    assert allowed == [1, 2, 4, 8]


def test_without_slow_start_probation_has_the_whole_window() -> None:
    assert walk(passed()).allowed(WINDOW) == WINDOW


@pytest.mark.parametrize(
    ("events", "allowed"),
    [
        ([], 0),
        (UP, WINDOW),
        ([*UP, doubt()], 0),
        ([*UP, doubt(), passed()], 1),
        ([*UP, disconnected()], 0),
        ([*UP, drained], 0),
    ],
)
def test_attempts_allowed_in_a_state(events: list[Event], allowed: int) -> None:
    health = walk(*events)
    assert health.allowed(WINDOW) == allowed
    assert health.state.takes_pages == (allowed > 0)


def test_each_state_entered_is_reported_with_its_reason() -> None:
    entered: list[tuple[LaneState, str]] = []
    health = Health(lambda state, reason: entered.append((state, reason)), slow_start=False)
    for event in [*UP, page, disconnected(), disconnected()]:
        event(health)
    assert entered == [
        (LaneState.PROBATION, "probe passed"),
        (LaneState.UP, "page read"),
        (LaneState.OPEN, "refused"),
    ]


def test_a_fault_says_whether_it_opened_a_lane_in_good_standing() -> None:
    health = walk(*UP)
    assert [health.fault(0.0, "500") for _ in range(3)] == [False, True, False]
    health.probe_passed(AFTER_OPEN)
    assert not health.fault(AFTER_OPEN, "500")  # half-open: it was known to be ill
    assert health.state is LaneState.OPEN
