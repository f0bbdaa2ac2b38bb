"""Nobody waits behind somebody else's book."""

import asyncio
import time
from pathlib import Path

from tests.pdfs import numbered_pdf
from tests.standins import StandIn
from tests.system.gateway import running_gateway
from tests.waiting import until

PAGE_SECONDS = 0.5


async def test_one_page_behind_sixty_is_done_within_about_two_page_times(tmp_path: Path) -> None:
    async with (
        StandIn(slots=1, seconds=PAGE_SECONDS) as one,
        StandIn(slots=1, seconds=PAGE_SECONDS) as two,
        running_gateway(tmp_path, [one.url, two.url]) as gateway,
    ):
        await gateway.lanes_up(2)
        book = await gateway.post(numbered_pdf(60))
        await until(lambda: one.peak + two.peak == 2)
        await asyncio.sleep(PAGE_SECONDS * 2.3)

        posted = time.monotonic()
        letter = await gateway.post(numbered_pdf(1))
        await gateway.ended(letter["id"])
        page_times = (time.monotonic() - posted) / PAGE_SECONDS

        state = (await gateway.client.get(book["links"]["self"])).json()
        await gateway.client.delete(book["links"]["self"])
    print(f"\none page behind 60 on two lanes: {page_times:.2f} page times")
    assert state["pages"]["queued"] > 30
    # Waiting for a lane takes less than one page time and reading one; the rest is room for a slow machine. Had the
    # letter queued up behind the book, it would have taken about 29.
    assert page_times < 8
