from datetime import UTC, datetime

import httpx
import pytest

from app.api.shapes import capacity_shape
from app.documents.records import Capacity
from app.fleet import LaneState, LaneView
from app.journal import Journal
from tests.journals import PROFILES, new_document


def lane(state: LaneState, window: int, inflight: int) -> LaneView:
    return LaneView(
        id="0123456789ab-0",
        endpoint="http://a",
        rank=None,
        engines=1,
        model=None,
        state=state,
        reason="page read",
        since=datetime.now(UTC),
        window=window,
        share=window,
        inflight=inflight,
        attempts=0,
        failures=0,
        charged=0,
        foreign=0,
        seconds_per_page=None,
        own=False,
    )


def test_slots_are_those_of_the_lanes_that_take_pages() -> None:
    lanes = [lane(LaneState.UP, 16, 10), lane(LaneState.OPEN, 16, 0), lane(LaneState.UP, 4, 5)]
    assert capacity_shape(Capacity(30, 15, 2.5, 2), lanes, 1000) == {
        "pages": {"queued": 30, "running": 15},
        "pages_per_second": 2.5,
        "backlog_seconds": 18.0,
        "lanes": {"up": 2, "total": 3},
        "slots": {"total": 20, "free": 6},
        "gateways": 2,
        "max_queued_pages": 1000,
    }


@pytest.mark.parametrize(("waiting", "backlog"), [(3, None), (0, 0.0)])
def test_a_backlog_is_not_guessed_at_before_a_rate_is_known(waiting: int, backlog: float | None) -> None:
    shape = capacity_shape(Capacity(waiting, 0, 0.0, 1), [], 1000)
    assert (shape["pages_per_second"], shape["backlog_seconds"]) == (None, backlog)


async def test_the_capacity_counts_the_pages_of_everybody(client: httpx.AsyncClient, journal: Journal) -> None:
    before = (await client.get("/capacity")).json()
    await journal.add_document(new_document(3))
    await journal.add_document(new_document(4, tenant="acme"))
    claims = await journal.claim(2, PROFILES)
    after = (await client.get("/capacity")).json()
    assert after["pages"] == {
        "queued": before["pages"]["queued"] + 7 - len(claims),
        "running": before["pages"]["running"] + len(claims),
    }
    assert after["lanes"] == {"up": 0, "total": 1}
    assert after["slots"] == {"total": 0, "free": 0}
    assert after["gateways"] == 1


async def test_a_document_tells_its_place_in_the_queue_and_a_list_does_not(
    client: httpx.AsyncClient, journal: Journal
) -> None:
    document = await journal.add_document(new_document(tenant="default"))
    shown = (await client.get(f"/documents/{document.id}")).json()
    (listed,) = (await client.get("/documents", params={"limit": "1"})).json()["documents"]
    assert shown["progress"]["queue_position"] >= 1
    assert listed["id"] == document.id
    assert listed["progress"]["queue_position"] is None
