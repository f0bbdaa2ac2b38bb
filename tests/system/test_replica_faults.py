"""Replicas that hang, die, leave, load for a minute or are slow: documents are whole all the same."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.pdfs import numbered_pdf
from tests.standins import Fault, Reply, StandIn
from tests.standins.fleet import StandInFleet
from tests.system.gateway import Event, Gateway, running_gateway
from tests.waiting import until

QUICK_PROBES = {"PAGEFLEET_HEALTH_INTERVAL_SECONDS": "0.2"}
WAYS_TO_FAIL = (
    *(Reply(status=status) for status in (400, 429, 500, 503)),
    *(Reply(fault=fault) for fault in (Fault.RESET_EARLY, Fault.RESET, Fault.CUT, Fault.IN_BAND_ERROR)),
    *(Reply(finish_reason=reason) for reason in ("abort", "length")),
)


@asynccontextmanager
async def gateway_on(folder: Path, replicas: Sequence[StandIn], **environment: str) -> AsyncIterator[Gateway]:
    """A gateway whose lanes are all up."""
    urls = [replica.url for replica in replicas]
    async with running_gateway(folder, urls, {**QUICK_PROBES, **environment}) as gateway:
        await gateway.lanes_up(len(urls))
        yield gateway


async def read_to_the_end(gateway: Gateway, document_id: str) -> list[Event]:
    events = [event async for event in gateway.follow(document_id)]
    assert events[-1].kind == "end"
    return events


async def in_state(gateway: Gateway, replica: StandIn, state: str) -> bool:
    """Whether the replica's lane is in `state`."""
    return any(lane["endpoint"] == replica.url and lane["state"] == state for lane in await gateway.lanes())


async def whole_document(gateway: Gateway, pages: int) -> None:
    """Post a document and see all of it read, each page once."""
    document = await gateway.post(numbered_pdf(pages))
    events = await read_to_the_end(gateway, document["id"])
    assert events[-1].data["document"]["state"] == "succeeded"
    assert each_page_once(events, pages)


def each_page_once(events: Sequence[Event], count: int) -> bool:
    return Counter(event.page for event in events if event.page) == Counter(range(1, count + 1))


async def test_pages_on_a_hung_engine_with_good_health_are_read_elsewhere_and_it_is_left_alone(tmp_path: Path) -> None:
    async with (
        StandIn(slots=2, seconds=0.05) as good,
        StandIn(slots=2, seconds=0.05) as hung,
        gateway_on(tmp_path, [good, hung], PAGEFLEET_PAGE_SECONDS="4") as gateway,
    ):
        hung.always(Reply(fault=Fault.HANG))
        await whole_document(gateway, 12)
        await until(lambda: in_state(gateway, hung, "half_open"))
        await whole_document(gateway, 12)
        assert await in_state(gateway, hung, "open")
        await whole_document(gateway, 12)
    assert good.call_count == 36
    assert hung.call_count <= 4


async def test_a_replica_killed_with_eight_pages_in_flight_costs_none_and_each_is_in_the_result_once(
    tmp_path: Path,
) -> None:
    async with StandInFleet(2, slots=8, seconds=0.1, text="Read.") as replicas:
        victim, other = replicas
        await victim.always(Reply(seconds=60))
        await other.kill()  # until the victim has its pages

        async def full() -> bool:
            return bool((await victim.counters())["present"] == 8)

        async with running_gateway(tmp_path, replicas.urls, QUICK_PROBES) as gateway:
            document = await gateway.post(numbered_pdf(12))
            await until(full)
            await other.start()
            await victim.kill()
            events = await read_to_the_end(gateway, document["id"])
            texts = await gateway.texts(document["id"])
            await victim.start()
            await gateway.lanes_up(2)
    assert events[-1].data["document"]["state"] == "succeeded"
    assert each_page_once(events, 12)
    assert texts == dict.fromkeys(range(1, 13), "Read.")


async def test_while_the_model_loads_documents_wait_uncounted_and_then_run(tmp_path: Path) -> None:
    async with StandIn(slots=4, seconds=0.05) as replica:
        await replica.stop()
        async with running_gateway(tmp_path, [replica.url], QUICK_PROBES) as gateway:
            ready = await gateway.client.get("/readyz", params={"lanes": "1"})
            document = await gateway.post(numbered_pdf(8))
            await asyncio.sleep(1.5)
            waiting = (await gateway.client.get(document["links"]["self"])).json()
            await replica.start()
            events = await read_to_the_end(gateway, document["id"])
            assert (await gateway.client.get("/readyz", params={"lanes": "1"})).status_code == 200
    assert ready.status_code == 503
    assert waiting["pages"]["succeeded"] == waiting["pages"]["failed"] == 0
    assert [event.data["page"]["attempts"] for event in events if event.page] == [1] * 8


async def test_after_a_storm_of_failures_and_cancels_nothing_is_in_flight_and_pages_are_split_evenly(
    tmp_path: Path,
) -> None:
    async with (
        StandIn(slots=8, seconds=0.1) as one,
        StandIn(slots=8, seconds=0.1) as two,
        gateway_on(tmp_path, [one, two]) as gateway,
    ):
        for replica in (one, two):
            replica.mix(*((0.02, reply) for reply in WAYS_TO_FAIL))
        documents = [await gateway.post(numbered_pdf(4)) for _ in range(30)]
        for document in documents[::2]:
            await gateway.client.post(document["links"]["cancel"])
        for document in documents:
            await gateway.ended(document["id"])
        for replica in (one, two):
            replica.mix()

        await until(lambda: one.present == two.present == 0)
        assert [lane["in_flight"] for lane in await gateway.lanes()] == [0, 0]
        await recovered(gateway)
        before = one.call_count
        await whole_document(gateway, 100)
        assert 40 <= one.call_count - before <= 60


async def recovered(gateway: Gateway) -> None:
    """Return when every lane is up and no failure counts as its load; pages, by which they come up, are posted here."""

    async def nothing_is_left() -> bool:
        document = await gateway.post(numbered_pdf(4))
        await gateway.ended(document["id"])
        return all(lane["state"] == "up" and lane["charged_failures"] == 0 for lane in await gateway.lanes())

    await until(nothing_is_left)


async def test_a_slow_replica_gets_about_its_share(tmp_path: Path) -> None:
    async with (
        StandIn(slots=4, seconds=0.1) as fast,
        StandIn(slots=4, seconds=0.8) as slow,
        gateway_on(tmp_path, [fast, slow]) as gateway,
    ):
        await whole_document(gateway, 72)
    # A ninth of 72 is 8. Both have the same window: blind turns would give it 36.
    assert 4 <= slow.call_count <= 18
    assert fast.call_count + slow.call_count == 72


async def test_a_replica_that_shuts_down_ends_what_it_has_and_gets_no_more(tmp_path: Path) -> None:
    async with (
        StandIn(slots=4, seconds=0.2) as staying,
        StandIn(slots=4, seconds=0.2) as leaving,
        gateway_on(tmp_path, [staying, leaving]) as gateway,
    ):
        document = await gateway.post(numbered_pdf(40))
        await until(lambda: leaving.running == 4)
        leaving.shutting_down = True
        taken = leaving.call_count
        events = await read_to_the_end(gateway, document["id"])
    assert each_page_once(events, 40)
    assert events[-1].data["document"]["state"] == "succeeded"
    assert leaving.disconnects == 0
    assert leaving.call_count - taken <= 8


async def test_pages_that_a_stopping_server_aborts_are_read_elsewhere(tmp_path: Path) -> None:
    async with (
        StandIn(slots=4, seconds=0.1) as staying,
        StandIn(slots=4, seconds=0.1) as stopping,
        gateway_on(tmp_path, [staying, stopping]) as gateway,
    ):
        stopping.always(Reply(seconds=60))
        staying_lane = next(lane["id"] for lane in await gateway.lanes() if lane["endpoint"] == staying.url)
        document = await gateway.post(numbered_pdf(12))
        await until(lambda: stopping.running >= 1)
        stopping.abort()
        stopping.leave(3600)
        events = await read_to_the_end(gateway, document["id"])
    assert events[-1].data["document"]["state"] == "succeeded"
    assert each_page_once(events, 12)
    assert {event.data["page"]["lane"] for event in events if event.page} == {staying_lane}
