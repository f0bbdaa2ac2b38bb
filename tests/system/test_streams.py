"""Event streams of a real gateway over stand-in replicas."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.pdfs import numbered_pdf
from tests.standins import Reply, StandIn
from tests.system.gateway import Event, Gateway, running_gateway

PAGES = 4


@pytest.fixture(scope="module")
async def replica() -> AsyncIterator[StandIn]:
    async with StandIn(slots=1, seconds=0.1) as replica:
        yield replica


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory, replica: StandIn) -> AsyncIterator[Gateway]:
    environment = {"PAGEFLEET_HEARTBEAT_SECONDS": "0.2"}
    async with running_gateway(tmp_path_factory.mktemp("data"), [replica.url], environment) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def ended(gateway: Gateway) -> str:
    """Id of a document whose pages have all been read."""
    document = await gateway.post(numbered_pdf(PAGES))
    await gateway.ended(document["id"])
    return str(document["id"])


async def collect(gateway: Gateway, document_id: str, cursor: str | None = None, **query: str) -> list[Event]:
    return [event async for event in gateway.follow(document_id, cursor, **query)]


async def test_pages_arrive_one_by_one_before_the_document_is_done(gateway: Gateway) -> None:
    document = await gateway.post(numbered_pdf(PAGES))
    unfinished = 0
    async for event in gateway.follow(document["id"]):
        if event.kind == "page":
            state = (await gateway.client.get(f"/documents/{document['id']}")).json()["state"]
            unfinished += state == "running"
    assert unfinished >= PAGES - 1


async def test_a_replay_is_the_same_but_for_the_document_of_the_moment(gateway: Gateway, ended: str) -> None:
    first, second = await collect(gateway, ended), await collect(gateway, ended)
    assert first == second
    assert [event.kind for event in first] == ["document", *["page"] * PAGES, "end"]
    assert [event.id for event in first] == [str(seq) for seq in range(1, PAGES + 3)]
    assert [event.data["seq"] for event in first] == list(range(1, PAGES + 3))


@pytest.mark.parametrize("order", ["completed", "page"])
async def test_resuming_at_any_event_gives_exactly_the_rest(gateway: Gateway, ended: str, order: str) -> None:
    whole = await collect(gateway, ended, order=order)
    for seen in range(1, len(whole)):
        assert await collect(gateway, ended, whole[seen - 1].id, order=order) == whole[seen:]


@pytest.mark.parametrize("order", ["completed", "page"])
async def test_resuming_from_the_end_gives_204(gateway: Gateway, ended: str, order: str) -> None:
    whole = await collect(gateway, ended, order=order)
    path = f"/documents/{ended}/events"
    by_header = await gateway.client.get(path, params={"order": order}, headers={"Last-Event-ID": whole[-1].id})
    by_query = await gateway.client.get(path, params={"order": order, "after": whole[-1].id})
    assert (by_header.status_code, by_query.status_code) == (204, 204)


async def test_page_order_waits_for_the_page_before(gateway: Gateway, replica: StandIn) -> None:
    replica.plan(Reply(seconds=1.0))  # the first page that comes is the last to end
    async with StandIn(slots=1, seconds=0.01) as second:
        data_dir = gateway.data_dir.parent / "two-lanes"
        async with running_gateway(data_dir, [replica.url, second.url]) as two:
            await two.lanes_up(2)
            document = await two.post(numbered_pdf(PAGES))
            by_page, by_completion = await asyncio.gather(
                collect(two, document["id"], order="page"), collect(two, document["id"])
            )
    assert [event.page for event in by_page if event.page] == list(range(1, PAGES + 1))
    assert sorted(event.page for event in by_completion if event.page) == list(range(1, PAGES + 1))
    assert [event.page for event in by_completion if event.page] != list(range(1, PAGES + 1))
    assert all(event.data["id"] == event.id for event in by_page)
    seqs = {event.page: event.data["seq"] for event in by_completion if event.page}
    assert {event.page: event.data["seq"] for event in by_page if event.page} == seqs


async def test_ndjson_has_one_event_a_line_and_heartbeats(gateway: Gateway, replica: StandIn) -> None:
    replica.plan(Reply(seconds=0.7))
    document = await gateway.post(numbered_pdf(1))
    response = await gateway.client.get(
        f"/documents/{document['id']}/events", headers={"Accept": "application/x-ndjson"}
    )
    kinds = [json.loads(line)["event"] for line in response.text.splitlines()]
    assert response.headers["content-type"].startswith("application/x-ndjson")
    assert "heartbeat" in kinds
    assert [kind for kind in kinds if kind != "heartbeat"] == ["document", "page", "end"]


async def test_streams_are_neither_stored_nor_held_back_by_a_proxy(gateway: Gateway, ended: str) -> None:
    response = await gateway.client.get(f"/documents/{ended}/events")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-accel-buffering"] == "no"


async def test_head_of_an_open_stream_ends_at_once(gateway: Gateway, replica: StandIn) -> None:
    replica.plan(Reply(seconds=1.0))
    document = await gateway.post(numbered_pdf(1))
    response = await gateway.client.head(f"/documents/{document['id']}/events")
    assert (response.status_code, response.content) == (200, b"")
    await gateway.ended(document["id"])


async def test_a_browser_that_began_at_a_cursor_reconnects_to_where_it_came(gateway: Gateway, ended: str) -> None:
    rest = await collect(gateway, ended, "4", after="2")
    assert [event.id for event in rest] == ["5", "6"]
    over = await gateway.client.get(f"/documents/{ended}/events?after=2", headers={"Last-Event-ID": "6"})
    assert over.status_code == 204


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"order": "completed", "after": "0.2"}, 422, "cursor_invalid"),
        ({"order": "page", "after": "2"}, 422, "cursor_invalid"),
        ({"after": "99"}, 422, "cursor_invalid"),
        ({"order": "page", "after": "1.0"}, 422, "cursor_invalid"),
        ({"order": "size"}, 422, "option_invalid"),
    ],
)
async def test_a_cursor_that_does_not_fit_is_refused(
    gateway: Gateway, ended: str, query: dict[str, str], status: int, code: str
) -> None:
    response = await gateway.client.get(f"/documents/{ended}/events", params=query)
    assert (response.status_code, response.json()["code"]) == (status, code)


async def test_a_reader_that_leaves_leaves_nothing_behind(gateway: Gateway, replica: StandIn) -> None:
    replica.plan(Reply(seconds=1.0))
    document = await gateway.post(numbered_pdf(2))
    for _ in range(5):
        with pytest.raises(httpx.ReadTimeout):
            await gateway.client.get(f"/documents/{document['id']}/events", timeout=0.1)
    assert (await gateway.ended(document["id"]))["state"] == "succeeded"


async def test_a_stream_ends_when_its_document_is_deleted(gateway: Gateway, replica: StandIn) -> None:
    replica.plan(Reply(seconds=5.0))
    document = await gateway.post(numbered_pdf(1))
    stream = asyncio.create_task(collect(gateway, document["id"]))
    await asyncio.sleep(0.3)
    assert (await gateway.client.delete(document["links"]["self"])).status_code == 204
    assert [event.kind for event in await stream] == ["document"]
