"""Many small documents, posted and polled wherever a client happens to come out."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import httpx

from tests.services.pages import shaped_pdf, text_of
from tests.standins import StandIn
from tests.waiting import DEADLINE_SECONDS

DOCUMENTS = 50
PAGES = 3
AT_ONCE = 8
POLL_SECONDS = 0.05


def shapes_of(number: int) -> range:
    """Shapes of the pages of document `number`, from 0: no two pages are alike."""
    return range(number * PAGES, (number + 1) * PAGES)


async def read_at_random(clients: Sequence[httpx.AsyncClient]) -> list[dict[str, Any]]:
    """Read all documents, each request through one of `clients`, by chance; the result of each, in order."""
    admission = asyncio.Semaphore(AT_ONCE)

    async def read(number: int) -> dict[str, Any]:
        async with admission, asyncio.timeout(DEADLINE_SECONDS):
            return await _read(clients, shaped_pdf(shapes_of(number)))

    return await asyncio.gather(*(read(number) for number in range(DOCUMENTS)))


async def _read(clients: Sequence[httpx.AsyncClient], pdf: bytes) -> dict[str, Any]:
    accepted = await random.choice(clients).post("/documents", content=pdf)
    assert accepted.status_code == 202, accepted.text
    links = accepted.json()["links"]
    while True:
        polled = await random.choice(clients).get(links["self"])
        assert polled.status_code == 200, polled.text
        if polled.json()["ended_at"] is not None:
            break
        await asyncio.sleep(POLL_SECONDS)
    result = await random.choice(clients).get(links["result"], params={"format": "json"})
    assert result.status_code == 200, result.text
    read: dict[str, Any] = result.json()
    return read


def check_read_once(results: Sequence[dict[str, Any]], replica: StandIn) -> None:
    """Every page has its own text, and the replica has seen every page once."""
    for number, result in enumerate(results):
        texts = [page["text"] for page in result["pages"]]
        assert texts == [text_of(shape) for shape in shapes_of(number)]
    assert Counter(map(replica.text, replica.calls)) == Counter(map(text_of, range(DOCUMENTS * PAGES)))
