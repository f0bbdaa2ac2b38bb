"""What gateways know of each other."""

import pytest

from app.journal.peers import Peer, Peers


def test_a_gateway_alone_knows_of_itself() -> None:
    peers = Peers("me")
    peers.want("cpu", 3)
    assert peers.wants("cpu") == {"me": 3}
    assert peers.wants("generic") == {"me": 0}
    assert peers.count == 1


def test_wants_are_told_by_gateway() -> None:
    peers = Peers("me")
    peers.want("cpu", 3)
    peers.heard({"other": Peer({"cpu": 5}), "idle": Peer()})
    assert peers.wants("cpu") == {"me": 3, "other": 5, "idle": 0}
    assert peers.count == 3


def test_who_is_not_heard_of_any_more_is_forgotten() -> None:
    peers = Peers("me")
    peers.heard({"other": Peer({"cpu": 5})})
    peers.heard({})
    assert peers.wants("cpu") == {"me": 0}


@pytest.mark.parametrize(
    ("wants", "others", "together"),
    [
        pytest.param({}, [], 3.0, id="alone"),
        pytest.param({"cpu": 1}, [Peer({"cpu": 2}, 4.0)], 7.0, id="both at work"),
        pytest.param({"cpu": 1}, [Peer({"cpu": 0}, 4.0)], 3.0, id="an idle one reads nothing"),
        pytest.param({}, [Peer({}, 4.0), Peer({}, 2.0)], 4.0, id="all idle: as fast as the fastest was"),
    ],
)
def test_the_rate_is_that_of_all_who_work(wants: dict[str, int], others: list[Peer], together: float) -> None:
    peers = Peers("me")
    peers.note_rate(3.0)
    for profile, pages in wants.items():
        peers.want(profile, pages)
    peers.heard({str(number): peer for number, peer in enumerate(others)})
    assert peers.pages_per_second == together


def test_whoever_asks_is_told_when_the_others_were_heard_of() -> None:
    peers = Peers("me")
    counts: list[int] = []
    peers.on_beat(lambda: counts.append(peers.count))
    peers.heard({"other": Peer()})
    assert counts == [2]
