"""PostgreSQL is away for a while under load: what it costs.

`python -m tests.services.outage` runs it with the default claim time of 30 s and 60 s without the database.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.servers import PostgresServer
from tests.services.cluster import running_gateways
from tests.services.pages import name_shape, shaped_pdf, text_of
from tests.standins import StandIn
from tests.system.gateway import Event, Gateway
from tests.waiting import until

DOCUMENTS = 6
PAGES = 30
SLOTS = 8
PAGE_SECONDS = 0.25
CLAIM_SECONDS = 30
GATEWAYS = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    streams: Sequence[Sequence[Event]]
    """Of each document, followed from its upload to its end."""
    texts: Sequence[dict[int, str]]
    """Of each document, by page."""
    refusals: Sequence[httpx.Response]
    """Of uploads while the database was away."""
    calls: Counter[str]
    """How often each page was read, by its text."""
    recovery_seconds: float
    """From the return of the database to the next page that was committed."""

    @property
    def read_again(self) -> int:
        return self.calls.total() - len(self.calls)

    def __str__(self) -> str:
        return (
            f"{self.calls.total()} attempts at {len(self.calls)} pages: {self.read_again} read again; "
            f"first page committed {self.recovery_seconds:.2f} s after the return"
        )


async def outage(folder: Path, claim_seconds: float, away_seconds: float) -> Outcome:
    """Take the database away while gateways read; all documents have ended when it returns."""
    with PostgresServer() as postgres:
        environment = {
            "PAGEFLEET_DATABASE_URL": postgres.create_database(),
            "PAGEFLEET_BLOB_URL": str(folder / "blobs"),
            "PAGEFLEET_CLAIM_SECONDS": str(claim_seconds),
        }
        async with (
            StandIn(slots=SLOTS, seconds=PAGE_SECONDS, text=name_shape) as replica,
            running_gateways(folder, GATEWAYS, [replica.url], environment) as gateways,
        ):
            documents = [
                await gateways[0].post(shaped_pdf(range(number * PAGES, (number + 1) * PAGES)))
                for number in range(DOCUMENTS)
            ]
            streams: list[list[Event]] = [[] for _ in documents]
            followers = [
                asyncio.create_task(_follow(gateways[number % GATEWAYS], document["id"], streams[number]))
                for number, document in enumerate(documents)
            ]
            await until(lambda: all(streams) and len(replica.calls) > 2 * SLOTS)
            postgres.stop()
            refusals = await _uploads_refused(gateways, away_seconds)
            postgres.start()
            returned = time.monotonic()
            await _a_page_is_committed(gateways[0])
            recovery_seconds = time.monotonic() - returned
            await asyncio.gather(*followers)
            texts = [await gateways[1].texts(document["id"]) for document in documents]
    return Outcome(streams, texts, refusals, Counter(map(name_shape, replica.calls)), recovery_seconds)


async def _follow(gateway: Gateway, document_id: str, events: list[Event]) -> None:
    async for event in gateway.follow(document_id):
        events.append(event)


async def _uploads_refused(gateways: Sequence[Gateway], seconds: float) -> list[httpx.Response]:
    end = time.monotonic() + seconds
    responses = []
    while time.monotonic() < end:
        responses += [await gateway.client.post("/documents", content=shaped_pdf([1])) for gateway in gateways]
        await asyncio.sleep(0.5)
    return responses


async def _a_page_is_committed(gateway: Gateway) -> None:
    sample = 'pagefleet_pages_ended_total{code="",state="succeeded"}'
    before = await gateway.metric(sample)

    async def committed() -> bool:
        return await gateway.metric(sample) > before

    await until(committed)


def expected_texts(number: int) -> dict[int, str]:
    """Of a document, by page."""
    return {page: text_of(number * PAGES + page - 1) for page in range(1, PAGES + 1)}


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="pagefleet-outage-") as folder:
        outcome = await outage(Path(folder), CLAIM_SECONDS, 2 * CLAIM_SECONDS)
    for number, (stream, texts) in enumerate(zip(outcome.streams, outcome.texts, strict=True)):
        assert [event.id for event in stream] == [str(seq) for seq in range(1, PAGES + 3)]
        assert texts == expected_texts(number)
    print(f"PostgreSQL away for {2 * CLAIM_SECONDS} s, claim time {CLAIM_SECONDS} s: {outcome}")


if __name__ == "__main__":
    asyncio.run(main())
