"""The fleet beside HAProxy and nginx: in front of the same replicas, with the same client, in one run.

All pages are sent at once. A proxy's client sends each page once and leaves the rest to the proxy.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from app.documents.records import Claim
from app.errors import AttemptError
from app.fleet.client import complete, open_client
from tests.benchmarks.balancers import HEALTH_SECONDS, LONGEST_PAGE_SECONDS, Balancer, HAProxy, Nginx
from tests.benchmarks.prepared import Reader, fleet_reader, read_book, request
from tests.standins import Fault, Reply
from tests.standins.fleet import StandInFleet

LANES = 4
SLOTS = 4
PAGES = 128
PAGE_SECONDS = 0.2
SLOW_FACTOR = 8
FAIL_FAST_SECONDS = 0.02
LETTER_AFTER_SECONDS = 0.5

Router = Callable[[], AbstractAsyncContextManager[Reader]]


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What is wrong with one lane of four."""

    name: str
    seconds: float = PAGE_SECONDS
    reply: Reply | None = None
    lanes_left: float = LANES - 1
    """Lanes' worth of work that all can do."""


TROUBLES = (
    _Trouble("equal lanes", lanes_left=LANES),
    _Trouble("one slow", PAGE_SECONDS * SLOW_FACTOR, lanes_left=LANES - 1 + 1 / SLOW_FACTOR),
    _Trouble("one fails fast", reply=Reply(status=500, seconds=FAIL_FAST_SECONDS)),
    _Trouble("one hangs", reply=Reply(fault=Fault.HANG)),
)


async def proxies(folder: Path) -> None:
    """Time of a book as a multiple of the ideal, and how long a letter takes that comes behind the book."""
    async with StandInFleet(LANES, slots=SLOTS, seconds=PAGE_SECONDS, text="Read.") as replicas:
        routers = dict(_routers(replicas.urls))
        print(f"proxies: {PAGES} pages of {PAGE_SECONDS} s on {LANES} lanes of {SLOTS} slots; time / ideal, pages lost")
        print(f"  {'':20}" + "".join(f"{name:>20}" for name in routers))
        for trouble in TROUBLES:
            await replicas[0].order(seconds=trouble.seconds)
            await replicas[0].always(trouble.reply)
            _row(trouble.name, [await _book(router, trouble) for router in routers.values()])
        await replicas[0].always(None)
        _row("letter, page times", [await _letter(router) for router in routers.values()])


def _routers(urls: list[str]) -> Iterator[tuple[str, Router]]:
    settings = {"page_seconds": LONGEST_PAGE_SECONDS, "health_interval_seconds": HEALTH_SECONDS}
    yield "pagefleet", partial(fleet_reader, urls, **settings)
    balancers: tuple[type[Balancer], ...] = (HAProxy, Nginx)
    for balancer in balancers:
        if balancer.find() is None:
            print(f"proxies: {balancer.program} SKIPPED: not installed; on Debian: apt-get install haproxy nginx-light")
        else:
            yield balancer.program, partial(_behind, balancer, urls)


@asynccontextmanager
async def _behind(balancer: type[Balancer], urls: list[str]) -> AsyncIterator[Reader]:
    with balancer(urls, SLOTS) as proxy:
        async with open_client(proxy.url, None) as client:
            yield _ProxyReader(client)


class _ProxyReader:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def read(self, claim: Claim) -> bool:
        try:
            await complete(self._client, request(claim), lambda: None)
        except AttemptError:
            return False
        return True


async def _book(router: Router, trouble: _Trouble) -> str:
    async with router() as reader:
        read = await read_book(reader, PAGES)
    ideal = PAGES * PAGE_SECONDS / SLOTS / trouble.lanes_left
    lost = sum(not page.good for page in read)
    return f"{max(page.seconds for page in read) / ideal:.2f}, {lost} lost"


async def _letter(router: Router) -> str:
    """In the middle of a book."""
    async with router() as reader:
        book = asyncio.create_task(read_book(reader, PAGES))
        await asyncio.sleep(LETTER_AFTER_SECONDS)
        (letter,) = await read_book(reader, 1, "letter")
        await book
    return f"{letter.seconds / PAGE_SECONDS:.2f}"


def _row(name: str, cells: list[str]) -> None:
    print(f"  {name:20}" + "".join(f"{cell:>20}" for cell in cells))
