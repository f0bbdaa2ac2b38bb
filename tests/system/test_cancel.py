import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.pdfs import numbered_pdf
from tests.standins import StandIn
from tests.system.gateway import Gateway, running_gateway
from tests.waiting import until


@pytest.fixture
async def replica() -> AsyncIterator[StandIn]:
    async with StandIn(slots=2, seconds=60) as replica:
        yield replica


@pytest.fixture
async def gateway(tmp_path: Path, replica: StandIn) -> AsyncIterator[Gateway]:
    async with running_gateway(tmp_path, [replica.url]) as gateway:
        await gateway.lanes_up(1)
        yield gateway


async def busy(replica: StandIn) -> None:
    await until(lambda: replica.running == 2)


async def idle(replica: StandIn) -> None:
    await until(lambda: replica.present == 0)


async def test_cancel_aborts_at_the_replica_and_frees_its_slots(gateway: Gateway, replica: StandIn) -> None:
    document = await gateway.post(numbered_pdf(5))
    stream = asyncio.create_task(gateway.ended(document["id"]))
    await busy(replica)
    answer = await gateway.client.post(document["links"]["cancel"])
    assert answer.json()["state"] == "cancelled"
    assert answer.json()["pages"] == {
        "total": 5, "queued": 0, "running": 0, "succeeded": 0, "failed": 0, "cancelled": 5,
    }  # fmt: skip
    await idle(replica)
    assert replica.disconnects == 2
    assert (await stream)["state"] == "cancelled"
    assert [lane["in_flight"] for lane in await gateway.lanes()] == [0]
    assert (await gateway.client.post(document["links"]["cancel"])).json()["state"] == "cancelled"
    result = await gateway.client.get(document["links"]["result"])
    assert (result.status_code, result.json()["code"]) == (409, "document_cancelled")

    replica.seconds = 0
    other = await gateway.post(numbered_pdf(3))
    assert (await gateway.ended(other["id"]))["state"] == "succeeded"


async def test_delete_erases_rows_and_bytes(gateway: Gateway, replica: StandIn) -> None:
    document = await gateway.post(numbered_pdf(3))
    await busy(replica)
    blobs = gateway.data_dir / "blobs"
    assert [path for path in blobs.rglob("*") if path.is_file()] != []
    assert (await gateway.client.delete(document["links"]["self"])).status_code == 204
    await idle(replica)
    for path in ("", "/events", "/result"):
        response = await gateway.client.get(document["links"]["self"] + path)
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert [path for path in blobs.rglob("*") if path.is_file()] == []
    assert (await gateway.client.delete(document["links"]["self"])).status_code == 404
