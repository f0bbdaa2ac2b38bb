"""All benchmarks, one after the other: `python -m tests.benchmarks`. They print figures and assert next to nothing."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.benchmarks.decision import decision
from tests.benchmarks.fairness import letter_behind_a_book
from tests.benchmarks.gateway_memory import gateway_memory
from tests.benchmarks.gateways import gateways
from tests.benchmarks.journal import journal, long_document
from tests.benchmarks.proxies import proxies
from tests.benchmarks.replica_memory import replica_memory
from tests.benchmarks.saturation import saturation
from tests.benchmarks.simulation import simulation
from tests.benchmarks.tesseract import beside_tesseract
from tests.benchmarks.throughput import share_of_ideal

BENCHMARKS: list[Callable[[Path], Awaitable[None]]] = [
    decision,
    share_of_ideal,
    letter_behind_a_book,
    simulation,
    saturation,
    proxies,
    journal,
    long_document,
    gateways,
    gateway_memory,
    replica_memory,
    beside_tesseract,
]


async def main() -> None:
    for benchmark in BENCHMARKS:
        with tempfile.TemporaryDirectory(prefix="pagefleet-benchmark-") as folder:
            await benchmark(Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
