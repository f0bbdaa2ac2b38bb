"""How long a letter takes that comes behind a book."""

import asyncio
import time
from pathlib import Path

from tests.benchmarks.throughput import standin_process
from tests.pdfs import numbered_pdf
from tests.system.gateway import running_gateway

PAGE_SECONDS = 0.5
ROUNDS = 10


async def letter_behind_a_book(folder: Path) -> None:
    """One page behind 60 on two lanes of one slot, at different moments of the pages in flight."""
    times = []
    async with (
        standin_process(1, PAGE_SECONDS) as one,
        standin_process(1, PAGE_SECONDS) as two,
        running_gateway(folder, [one, two]) as gateway,
    ):
        await gateway.lanes_up(2)
        book = await gateway.post(numbered_pdf(60))
        for round_number in range(ROUNDS):
            await asyncio.sleep(PAGE_SECONDS * (1 + round_number / ROUNDS))
            started = time.perf_counter()
            letter = await gateway.post(numbered_pdf(1))
            await gateway.ended(letter["id"])
            times.append((time.perf_counter() - started) / PAGE_SECONDS)
        await gateway.client.delete(book["links"]["self"])
    times.sort()
    print(
        f"fairness: a letter behind a book on two lanes of one slot takes "
        f"{times[len(times) // 2]:.2f} page times (median of {ROUNDS}; {times[0]:.2f} to {times[-1]:.2f})"
    )
