"""What one gateway leaves or wants, another takes up."""

import time
from collections import Counter
from pathlib import Path

from tests.services.cluster import calls_of, knows, running_gateways
from tests.services.conftest import CLAIM_SECONDS
from tests.services.pages import name_shape, shaped_pdf, text_of
from tests.standins import StandIn
from tests.waiting import until

PAGES = 20
FOR_EVER_SECONDS = 600


async def test_pages_of_a_killed_gateway_are_taken_over_within_the_claim_time(
    tmp_path: Path, shared: dict[str, str]
) -> None:
    async with (
        StandIn(slots=8, seconds=3, text=name_shape) as replica,
        running_gateways(tmp_path, 2, [replica.url], shared) as (one, two),
    ):
        document = await two.post(shaped_pdf(range(PAGES)))
        await until(lambda: replica.running == 8)
        left = set(map(name_shape, calls_of(0, replica)))
        await one.kill()
        killed = time.monotonic()
        replica.seconds = 0.05
        await until(lambda: bool(left & set(map(name_shape, calls_of(1, replica)))))
        seconds = time.monotonic() - killed
        events = [event async for event in two.follow(document["id"])]
        texts = await two.texts(document["id"])
        await knows(two, 1)
    print(f"taken over {seconds:.2f} s after the kill, with a claim time of {CLAIM_SECONDS} s")
    assert seconds < 5 * CLAIM_SECONDS
    assert Counter(event.page for event in events if event.page) == Counter(range(1, PAGES + 1))
    assert [event.id for event in events] == [str(seq) for seq in range(1, PAGES + 3)]
    assert texts == {number: text_of(number - 1) for number in range(1, PAGES + 1)}
    assert Counter(map(name_shape, calls_of(1, replica))) == Counter(map(text_of, range(PAGES)))


async def test_pages_of_a_gateway_that_is_stopped_are_taken_over_at_once(
    tmp_path: Path, shared: dict[str, str]
) -> None:
    environment = {**shared, "PAGEFLEET_GRACE_SECONDS": "0", "PAGEFLEET_CLAIM_SECONDS": str(FOR_EVER_SECONDS)}
    async with (
        StandIn(slots=8, seconds=3, text=name_shape) as replica,
        running_gateways(tmp_path, 2, [replica.url], environment) as (one, two),
    ):
        document = await two.post(shaped_pdf(range(PAGES)))
        await until(lambda: replica.running == 8 and bool(calls_of(0, replica)))
        assert await one.terminate() == 0
        replica.seconds = 0.05
        end = await two.ended(document["id"])
    assert end["pages"]["succeeded"] == PAGES
    assert Counter(map(name_shape, calls_of(1, replica))) == Counter(map(text_of, range(PAGES)))


async def test_a_cancel_at_one_gateway_aborts_attempts_of_another(tmp_path: Path, shared: dict[str, str]) -> None:
    async with (
        StandIn(slots=8, seconds=FOR_EVER_SECONDS) as replica,
        running_gateways(tmp_path, 2, [replica.url], shared) as (one, _),
    ):
        document = await one.post(shaped_pdf(range(PAGES)))
        await until(lambda: replica.running == 8)
        far = calls_of(1, replica)
        asked = time.monotonic()
        answer = await one.client.post(document["links"]["cancel"])
        await until(lambda: all(call.disconnected for call in far))
        seconds = time.monotonic() - asked
        counts = (await one.client.get(document["links"]["self"])).json()["pages"]
    print(f"{len(far)} attempts of the other gateway were aborted {seconds:.3f} s after the cancel was sent")
    assert answer.json()["state"] == "cancelled"
    assert far
    assert seconds < 5
    assert (counts["cancelled"], counts["running"]) == (PAGES, 0)
