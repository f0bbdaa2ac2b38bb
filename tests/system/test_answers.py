"""What replicas may answer, and what becomes of the page."""

from collections.abc import AsyncIterator

import pytest

from tests.pdfs import numbered_pdf
from tests.standins import Fault, Reply, StandIn
from tests.system.gateway import TAKING_PAGES, Gateway, running_gateway


@pytest.fixture(scope="module")
async def replicas() -> AsyncIterator[list[StandIn]]:
    async with StandIn(text=lambda _: "read") as one, StandIn(text=lambda _: "read") as two:
        yield [one, two]


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory, replicas: list[StandIn]) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path_factory.mktemp("data"), [replica.url for replica in replicas]) as gateway:
        await gateway.lanes_up(2)
        yield gateway


@pytest.fixture(autouse=True)
async def healthy(gateway: Gateway, replicas: list[StandIn]) -> None:
    """Every test begins with no fault planned and both lanes up, so that none is punished for what was before."""
    for replica in replicas:
        replica.always(None)
    await gateway.lanes_up(2)
    while any(lane["state"] != "up" for lane in await gateway.lanes()):
        await gateway.ended((await gateway.post(numbered_pdf(4)))["id"])


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500),
        Reply(status=503, headers={"Retry-After": "1"}),
        Reply(fault=Fault.RESET_EARLY),
        Reply(fault=Fault.RESET),
        Reply(fault=Fault.CUT),
        Reply(fault=Fault.KEEP_ALIVE_CUT),
        Reply(fault=Fault.ERROR_BODY),
        Reply(fault=Fault.HTML),
        Reply(fault=Fault.GARBAGE),
        Reply(fault=Fault.EMPTY_CHOICES),
        Reply(fault=Fault.IN_BAND_ERROR),
        Reply(fault=Fault.MALFORMED),
        Reply(finish_reason="abort"),
    ],
    ids=lambda reply: str(reply.fault or reply.finish_reason) if reply.status == 200 else str(reply.status),
)
async def test_what_one_lane_does_wrong_another_mends(gateway: Gateway, replicas: list[StandIn], reply: Reply) -> None:
    replicas[0].always(reply)
    document = await gateway.post(numbered_pdf(3))
    end = await gateway.ended(document["id"])
    assert end["state"] == "succeeded"
    assert set((await gateway.texts(document["id"])).values()) == {"read"}


async def test_a_page_is_given_up_after_three_charged_attempts(gateway: Gateway, replicas: list[StandIn]) -> None:
    for replica in replicas:
        replica.always(Reply(status=500))
    document = await gateway.post(numbered_pdf(1))
    events = [event async for event in gateway.follow(document["id"])]
    page, end = events[1].data["page"], events[2].data["document"]
    assert (page["state"], page["attempts"], page["error"]["code"]) == ("failed", 3, "replica_error")
    assert page["error"]["page"] == 1
    assert (end["state"], end["error"]["code"]) == ("failed", "document_failed")
    result = await gateway.client.get(f"/documents/{document['id']}/result")
    assert (result.status_code, result.json()["code"]) == (422, "document_failed")


@pytest.mark.parametrize(
    ("reply", "code"),
    [(Reply(status=400), "replica_error"), (Reply(finish_reason="length"), "answer_truncated")],
)
async def test_what_every_lane_would_answer_is_asked_once(
    gateway: Gateway, replicas: list[StandIn], reply: Reply, code: str
) -> None:
    for replica in replicas:
        replica.always(reply)
        replica.calls.clear()
    document = await gateway.post(numbered_pdf(1))
    page = [event async for event in gateway.follow(document["id"])][1].data["page"]
    assert (page["state"], page["error"]["code"], page["attempts"]) == ("failed", code, 1)
    assert sum(len(replica.calls) for replica in replicas) == 1
    assert all(lane["state"] in TAKING_PAGES for lane in await gateway.lanes())


async def test_one_bad_page_leaves_a_partial_document(gateway: Gateway, replicas: list[StandIn]) -> None:
    for replica in replicas:
        replica.plan(Reply(status=400))
    document = await gateway.post(numbered_pdf(6))
    end = await gateway.ended(document["id"])
    markdown = (await gateway.client.get(f"/documents/{document['id']}/result")).text
    failed = 6 - end["pages"]["succeeded"]
    assert end["state"] == "partial"
    assert 1 <= failed <= 2
    assert markdown.count("failed: replica_error -->") == failed
    assert [markdown.index(f"<!-- page {number}") for number in range(1, 7)] == sorted(
        markdown.index(f"<!-- page {number}") for number in range(1, 7)
    )
