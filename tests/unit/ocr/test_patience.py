import pytest

from app.ocr.errors import Refused, ServerLost, Unanswered
from app.ocr.patience import AWAY_SECONDS, PUT_OFF_SECONDS, Contact, Patience

GONE = Unanswered("refused")
BUSY = Refused("queue_full", "too many", passing=True, retry_after_seconds=9)


class Situation:
    """One request at a server, with a clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.told: list[str] = []
        self.gone = False
        self.contact = Contact(self.told.append, lambda: self.gone, lambda: self.now)
        self.patience = Patience(self.contact)

    def fail(self, error: Refused | Unanswered) -> float:
        wait = self.patience.seconds_after(error)
        self.now += wait
        return wait


@pytest.fixture
def situation() -> Situation:
    return Situation()


def test_waits_double_up_to_5_seconds(situation: Situation) -> None:
    assert [situation.fail(GONE) for _ in range(7)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_waits_are_short_again_after_something_came(situation: Situation) -> None:
    situation.fail(GONE)
    situation.patience.answered()
    assert situation.fail(GONE) == 0.4
    situation.patience.progressed()
    assert situation.fail(GONE) == 0.2


def test_an_outage_is_told_once_and_given_up_after_a_minute_without_an_answer(situation: Situation) -> None:
    began = situation.now
    with pytest.raises(ServerLost, match="60 s"):
        while True:
            situation.fail(GONE)
    assert AWAY_SECONDS <= situation.now - began <= AWAY_SECONDS + 5
    assert len(situation.told) == 1


def test_an_answer_to_any_request_ends_the_outage_of_all(situation: Situation) -> None:
    for _ in range(20):
        situation.fail(GONE)
        situation.contact.heard()
    assert len(situation.told) == 20


def test_a_server_that_will_not_come_back_is_not_waited_for(situation: Situation) -> None:
    situation.gone = True
    with pytest.raises(ServerLost, match="has ended"):
        situation.fail(GONE)


def test_the_wait_that_a_busy_server_asks_for_is_kept_within_bounds(situation: Situation) -> None:
    assert situation.fail(BUSY) == 9
    assert situation.fail(Refused("busy", "", passing=True, retry_after_seconds=3600)) == 60
    assert situation.fail(Refused("busy", "", passing=True)) == 0.8


def test_a_file_that_is_put_off_for_ever_is_given_up_with_the_reason(situation: Situation) -> None:
    began = situation.now
    with pytest.raises(Refused) as refused:
        while True:
            situation.fail(BUSY)
    assert refused.value.reason == "queue_full"
    assert PUT_OFF_SECONDS <= situation.now - began <= PUT_OFF_SECONDS + 9


def test_a_quiet_stream_is_not_put_off(situation: Situation) -> None:
    for _ in range(5):
        situation.fail(GONE)
        situation.patience.answered()
        situation.now += PUT_OFF_SECONDS


def test_what_stays_refused_is_not_tried_again(situation: Situation) -> None:
    with pytest.raises(Refused):
        situation.fail(Refused("damaged_pdf", "beyond repair"))
