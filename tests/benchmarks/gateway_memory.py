"""Whether a gateway and its render workers keep their size: resident memory after 50 and after 300 documents."""

import asyncio
from pathlib import Path

from tests.benchmarks.throughput import standin_process
from tests.pdfs import numbered_pdf
from tests.processes import children, command_line, resident_mib
from tests.system.gateway import Gateway, running_gateway

DOCUMENTS = 300
FIRST_LOOK = 50
AT_ONCE = 5


async def gateway_memory(folder: Path) -> None:
    """300 documents of three pages on a stand-in, five at a time, each streamed and its result fetched."""
    async with standin_process(8, 0.01) as url, running_gateway(folder, [url]) as gateway:
        await gateway.lanes_up(1)
        await _read(gateway, FIRST_LOOK)
        early = _sizes(gateway)
        await _read(gateway, DOCUMENTS - FIRST_LOOK)
        late = _sizes(gateway)
    figures = ", ".join(f"{name} {early.get(name, 0):.0f} → {size:.0f}" for name, size in late.items())
    print(f"memory after {FIRST_LOOK} → {DOCUMENTS} documents, MiB: {figures}")


async def _read(gateway: Gateway, count: int) -> None:
    async def read() -> None:
        document = await gateway.post(numbered_pdf(3))
        await gateway.ended(document["id"])
        await gateway.texts(document["id"])

    for _ in range(count // AT_ONCE):
        await asyncio.gather(*(read() for _ in range(AT_ONCE)))


def _sizes(gateway: Gateway) -> dict[str, float]:
    """Resident MiB by process."""
    sizes = {"gateway": resident_mib(gateway.process.pid)}
    workers = [pid for pid in children(gateway.process.pid) if "app.rendering.child" in command_line(pid)]
    return sizes | {f"render worker {pid}": resident_mib(pid) for pid in sorted(workers)}
