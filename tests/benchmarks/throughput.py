"""How much of its replicas' time a gateway uses, and what a page costs it."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.pdfs import text_pdf
from tests.processes import children, cpu_seconds
from tests.standins.fleet import StandInFleet
from tests.system.gateway import running_gateway

SLOTS = 8
PAGE_SECONDS = 0.25
PAGES = 200
TEXT = "\n".join(f"Line {line} of a page as books have them, set in eleven points." for line in range(45))


@asynccontextmanager
async def standin_process(slots: int, seconds: float) -> AsyncIterator[str]:
    """A stand-in replica in a process of its own, so that its CPU time is not the gateway's; its URL."""
    async with StandInFleet(1, slots=slots, seconds=seconds, text="Read.") as replicas:
        yield replicas.urls[0]


async def share_of_ideal(folder: Path) -> None:
    """200 born-digital pages on 8 slots of 0.25 s: 6.25 s would be perfect."""
    book = text_pdf([f"Page {number}\n{TEXT}" for number in range(1, PAGES + 1)], fontsize=11)
    ideal = PAGES * PAGE_SECONDS / SLOTS
    async with standin_process(SLOTS, PAGE_SECONDS) as url, running_gateway(folder, [url]) as gateway:
        await gateway.lanes_up(1)
        warm_up = await gateway.post(text_pdf([TEXT] * 16))
        await gateway.ended(warm_up["id"])

        pid = gateway.process.pid
        cpu_before, alone_before = with_children(pid), cpu_seconds(pid)
        started = time.perf_counter()
        document = await gateway.post(book)
        end = await gateway.ended(document["id"])
        seconds = time.perf_counter() - started
        cpu, alone = with_children(pid) - cpu_before, cpu_seconds(pid) - alone_before
    assert end["pages"]["succeeded"] == PAGES, json.dumps(end["pages"])
    print(
        f"throughput: {PAGES} pages on {SLOTS} slots of {PAGE_SECONDS} s in {seconds:.2f} s: "
        f"{ideal / seconds:.1%} of ideal; CPU {1000 * cpu / PAGES:.1f} ms a page, "
        f"{1000 * alone / PAGES:.1f} of them in the gateway process"
    )


def with_children(pid: int) -> float:
    """CPU seconds of the gateway and its render workers."""
    return cpu_seconds(pid) + sum(map(cpu_seconds, children(pid)))
