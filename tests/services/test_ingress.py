"""Gateways behind nginx, which sends every request to the next one."""

import asyncio
from pathlib import Path

import httpx
import pytest

from tests.servers import Nginx
from tests.services.cluster import running_gateways
from tests.services.documents import check_read_once, read_at_random
from tests.services.pages import shaped_pdf
from tests.standins import StandIn
from tests.system.gateway import END_SECONDS, Gateway


def client_of(nginx: Nginx) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=nginx.url, timeout=END_SECONDS, trust_env=False)


@pytest.mark.parametrize("count", [2, 4])
async def test_documents_posted_and_polled_through_nginx_are_all_read_once(
    tmp_path: Path, shared: dict[str, str], replica: StandIn, count: int
) -> None:
    async with running_gateways(tmp_path, count, [replica.url], shared) as gateways:
        with Nginx([str(gateway.client.base_url).rstrip("/") for gateway in gateways]) as nginx:
            async with client_of(nginx) as client:
                direct = [gateway.client for gateway in gateways]
                results = await read_at_random([*[client] * (3 * count), *direct])
    check_read_once(results, replica)


async def test_events_come_through_nginx_one_by_one(tmp_path: Path, shared: dict[str, str]) -> None:
    async with (
        StandIn(slots=1, seconds=0.3) as replica,
        running_gateways(tmp_path, 2, [replica.url], shared) as gateways,
    ):
        with Nginx([str(gateway.client.base_url).rstrip("/") for gateway in gateways]) as nginx:
            async with client_of(nginx) as client:
                through = Gateway(gateways[0].process, client, gateways[0].data_dir)
                document = await through.post(shaped_pdf(range(5)))
                ended_before = 0
                async for event in through.follow(document["id"]):
                    if event.page:
                        counts = (await client.get(document["links"]["self"])).json()["pages"]
                        ended_before += counts["succeeded"] < 5
    assert ended_before >= 3  # a buffering proxy would hand them over together, at the end


async def test_a_gateway_that_died_is_passed_over(tmp_path: Path, shared: dict[str, str], replica: StandIn) -> None:
    async with running_gateways(tmp_path, 2, [replica.url], shared) as (one, two):
        with Nginx([str(gateway.client.base_url).rstrip("/") for gateway in (one, two)]) as nginx:
            async with client_of(nginx) as client:
                document = (await client.post("/documents", content=shaped_pdf([1, 2]))).json()
                await two.ended(document["id"])
                await one.kill()
                answers = await asyncio.gather(*(client.get(document["links"]["self"]) for _ in range(20)))
    assert [answer.status_code for answer in answers] == [200] * 20
