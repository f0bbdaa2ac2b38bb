"""The database has committed, and the gateway is not told."""

from collections import Counter
from pathlib import Path

import pytest

from tests.services.cluster import running_gateways
from tests.services.cutting import cutting_proxy
from tests.services.pages import name_shape, shaped_pdf, text_of
from tests.standins import StandIn
from tests.waiting import until

PAGES = 4


@pytest.mark.parametrize("statement", ["INSERT INTO events", "last_document_pass="], ids=["page that ended", "claim"])
async def test_a_commit_whose_answer_was_cut_off_counts_once(
    tmp_path: Path, shared: dict[str, str], statement: str
) -> None:
    async with (
        StandIn(slots=1, seconds=0.5, text=name_shape) as replica,
        cutting_proxy(shared["PAGEFLEET_DATABASE_URL"]) as proxy,
        running_gateways(tmp_path, 1, [replica.url], {**shared, "PAGEFLEET_DATABASE_URL": proxy.url}) as (gateway,),
    ):
        document = await gateway.post(shaped_pdf(range(PAGES)))
        await until(lambda: replica.running == 1)
        proxy.cut_commit_of(statement)
        events = [event async for event in gateway.follow(document["id"])]
        texts = await gateway.texts(document["id"])
    assert proxy.cuts == 1
    assert Counter(event.page for event in events if event.page) == Counter(range(1, PAGES + 1))
    assert [event.id for event in events] == [str(seq) for seq in range(1, PAGES + 3)]
    assert texts == {number: text_of(number - 1) for number in range(1, PAGES + 1)}
    assert Counter(map(name_shape, replica.calls)) == Counter(map(text_of, range(PAGES)))


async def test_an_upload_whose_answer_was_cut_off_is_accepted_once(tmp_path: Path, shared: dict[str, str]) -> None:
    async with (
        StandIn(text=name_shape) as replica,
        cutting_proxy(shared["PAGEFLEET_DATABASE_URL"]) as proxy,
        running_gateways(tmp_path, 1, [replica.url], {**shared, "PAGEFLEET_DATABASE_URL": proxy.url}) as (gateway,),
    ):
        proxy.cut_commit_of("INSERT INTO documents")
        document = await gateway.post(shaped_pdf([1]))
        end = await gateway.ended(document["id"])
        listed = (await gateway.client.get("/documents")).json()["documents"]
    assert proxy.cuts == 1
    assert end["state"] == "succeeded"
    assert [document["id"] for document in listed] == [end["id"]]
    assert len(replica.calls) == 1
