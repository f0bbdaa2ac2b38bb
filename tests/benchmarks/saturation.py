"""How busy the fleet keeps its lanes, over real sockets and with prepared images."""

import os
import random
from pathlib import Path

from tests.benchmarks.prepared import Read, fleet_reader, read_book, request
from tests.benchmarks.simulation.traffic import claim_of
from tests.standins.call import Call
from tests.standins.fleet import StandInFleet
from tests.standins.service_time import by_image

LANES = 4
BOOKS = ((1, (0.1, 0.3), 400), (4, (0.15, 0.35), 256), (32, (1.0, 3.0), 448))
"""Slots a lane, least and most seconds of a page, and pages: as many a second as two cores can feed.

Pages of equal length would all end at once, round after round, as no real ones do.
"""
WARM_UP_SECONDS = 0.05
SLOW_FACTOR = 8
SLOW_SECONDS = 0.1
SLOW_SLOTS = 4
SLOW_PAGES = 480


async def saturation(folder: Path) -> None:
    print(f"saturation: load average at the beginning {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for slots, seconds, pages in BOOKS:
        await _book(slots, seconds, pages)
    await _slow_lane()


async def _book(slots: int, seconds: tuple[float, float], pages: int) -> None:
    least, most = seconds
    async with (
        StandInFleet(LANES, slots=slots, seconds=WARM_UP_SECONDS, text="Read.") as replicas,
        fleet_reader(replicas.urls) as reader,
    ):
        await read_book(reader, LANES * slots)  # opens the connections
        for replica in replicas:
            await replica.order(seconds=f"image:{least},{most}")
        read = await read_book(reader, pages)
    assert all(page.good for page in read)
    service = _service_seconds(pages, seconds)
    took = max(page.seconds for page in read)
    ideal = max(sum(service) / (LANES * slots), most)
    busy = _busy_share(read, service, LANES * slots)
    print(
        f"saturation: {pages} pages of {least} to {most} s on {LANES} lanes of {slots} slots: "
        f"busy for {busy:.1%} of the time while pages wait; makespan {took / ideal:.3f} x ideal"
    )


def _busy_share(read: list[Read], service: list[float], slots: int) -> float:
    """Of all slots' time until the last page begins."""
    spans = [(page.seconds - seconds, page.seconds) for page, seconds in zip(read, service, strict=True)]
    waited = max(begun for begun, _ in spans)
    return sum(max(0.0, min(ended, waited) - begun) for begun, ended in spans) / (slots * waited)


def _service_seconds(pages: int, seconds: tuple[float, float]) -> list[float]:
    """What the stand-ins take for the pages of the book."""
    service = by_image(random.Random(), *seconds)
    bodies = (b"".join(request(claim_of("book", number))) for number in range(1, pages + 1))
    return [service(Call(0, {}, body, len(body))) for body in bodies]


async def _slow_lane() -> None:
    async with StandInFleet(LANES, slots=SLOW_SLOTS, seconds=SLOW_SECONDS, text="Read.") as replicas:
        await replicas[0].order(seconds=SLOW_FACTOR * SLOW_SECONDS)
        async with fleet_reader(replicas.urls) as reader:
            read = await read_book(reader, SLOW_PAGES)
        calls = await replicas.calls()
    ideal = SLOW_PAGES * SLOW_SECONDS / SLOW_SLOTS / (LANES - 1 + 1 / SLOW_FACTOR)
    took = max(page.seconds for page in read)
    print(
        f"saturation: one of {LANES} lanes {SLOW_FACTOR} times slower, no weights: {took / ideal:.3f} x ideal; "
        f"pages by lane {calls}"
    )
