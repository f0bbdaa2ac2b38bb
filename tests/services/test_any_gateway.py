"""Any gateway answers for any document."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from app.api.keys import as_yaml, new_key
from tests.services.cluster import running_gateways
from tests.services.documents import check_read_once, read_at_random
from tests.services.pages import shaped_pdf
from tests.standins import StandIn
from tests.system.gateway import Event


@pytest.mark.parametrize("count", [2, 4])
async def test_documents_posted_and_polled_at_random_gateways_are_all_read_once(
    tmp_path: Path, shared: dict[str, str], replica: StandIn, count: int
) -> None:
    async with running_gateways(tmp_path, count, [replica.url], shared) as gateways:
        documents = await read_at_random([gateway.client for gateway in gateways])
    check_read_once(documents, replica)


async def test_events_are_followed_and_resumed_at_gateways_that_did_not_take_the_upload(
    tmp_path: Path, shared: dict[str, str]
) -> None:
    async with (
        StandIn(slots=1, seconds=0.2) as replica,
        running_gateways(tmp_path, 3, [replica.url], shared) as (one, two, three),
    ):
        document = await one.post(shaped_pdf(range(12)))
        seen: list[Event] = []
        async for event in two.follow(document["id"]):
            seen.append(event)
            if len(seen) == 6:
                break
        seen += [event async for event in three.follow(document["id"], seen[-1].id)]
        replay = [event async for event in one.follow(document["id"])]
    assert [event.id for event in seen] == [event.id for event in replay] == [str(seq) for seq in range(1, 15)]
    assert [event.kind for event in seen] == ["document", *["page"] * 12, "end"]
    assert sorted(event.page for event in seen if event.page) == list(range(1, 13))


async def test_one_idempotency_key_at_two_gateways_makes_one_document(
    tmp_path: Path, shared: dict[str, str], replica: StandIn
) -> None:
    async with running_gateways(tmp_path, 2, [replica.url], shared) as gateways:
        posts = [
            random.choice(gateways).client.post(
                "/documents", content=shaped_pdf([1, 2]), headers={"Idempotency-Key": "once"}
            )
            for _ in range(50)
        ]
        answers = await asyncio.gather(*posts)
        last = await gateways[0].client.post(
            "/documents", content=shaped_pdf([1, 2]), headers={"Idempotency-Key": "once"}
        )
        listed = (await gateways[1].client.get("/documents")).json()["documents"]
    assert set(Counter(answer.status_code for answer in answers)) <= {202, 409}
    ids = {answer.json()["id"] for answer in (*answers, last) if answer.status_code == 202}
    assert ids == {document["id"] for document in listed}
    assert len(ids) == 1


async def test_a_tenants_documents_are_its_own_at_every_gateway(
    tmp_path: Path, shared: dict[str, str], replica: StandIn
) -> None:
    keys, entries = zip(*(new_key(tenant, None, ["read", "write"]) for tenant in ("acme", "other")), strict=True)
    keys_file = tmp_path / "keys.yaml"
    keys_file.write_text("".join(map(as_yaml, entries)))
    mine, foreign = ({"Authorization": f"Bearer {key}"} for key in keys)
    environment = {**shared, "PAGEFLEET_API_KEYS_FILE": str(keys_file)}
    async with running_gateways(tmp_path, 2, [replica.url], environment) as (one, two):
        accepted = await one.client.post("/documents", content=shaped_pdf([1]), headers=mine)
        path = accepted.json()["links"]["self"]
        statuses = [
            (await two.client.get(path, headers=headers)).status_code
            for headers in (mine, foreign, {}, {"Authorization": "Bearer pf_wrong"})
        ]
        cancelled = await two.client.post(f"{path}/cancel", headers=foreign)
    assert accepted.status_code == 202
    assert statuses == [200, 404, 401, 401]
    assert (cancelled.status_code, cancelled.json()["code"]) == (404, "not_found")
