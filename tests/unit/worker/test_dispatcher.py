"""Pages and lanes brought together, on a real fleet."""

import asyncio
from typing import Self

from app.documents.models import CPU_MODEL
from app.fleet import Attempt, Fleet
from app.profiles import Profile, Profiles
from app.settings import Settings
from app.worker.dispatcher import Dispatcher
from tests.standins import StandIn
from tests.unit.worker.parts import claim, running_fleet

PROFILES = Profiles(Settings())
GENERIC, CPU = PROFILES["generic"], PROFILES["cpu"]


class Pages:
    """Tasks that wait for a lane, by document and page; at the end of the context they give up their lanes."""

    def __init__(self, fleet: Fleet) -> None:
        self._dispatcher = Dispatcher(fleet)
        self._tasks: dict[tuple[str, int], asyncio.Task[Attempt]] = {}
        fleet.on_change(self._dispatcher.pump)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for key in await self.granted():
            self[key].result().release()
        for task in self._tasks.values():
            task.cancel()

    def __getitem__(self, key: tuple[str, int]) -> "asyncio.Task[Attempt]":
        return self._tasks[key]

    @property
    def waiting(self) -> int:
        return len(self._dispatcher._queue)

    def send(self, document: str, *pages: int, profile: Profile = GENERIC, avoid: tuple[str, ...] = ()) -> None:
        for page in pages or (1,):
            attempt = self._dispatcher.attempt(claim(document, page), profile, avoid)
            self._tasks[document, page] = asyncio.create_task(attempt)

    async def granted(self) -> list[tuple[str, int]]:
        """Pages that have got a lane by now."""
        for _ in range(3):  # a grant reaches its task within two turns of the loop
            await asyncio.sleep(0)
        return [key for key, task in self._tasks.items() if task.done() and not task.cancelled()]


async def test_a_page_gets_a_free_lane_at_once_and_holds_its_slot() -> None:
    async with StandIn(slots=2) as replica, running_fleet(replica.url) as fleet, Pages(fleet) as pages:
        pages.send("book")
        assert await pages.granted() == [("book", 1)]
        assert fleet.free_slots(GENERIC.serves) == 1


async def test_a_page_waits_until_a_slot_is_given_back() -> None:
    async with StandIn(slots=1) as replica, running_fleet(replica.url) as fleet, Pages(fleet) as pages:
        pages.send("book", 1, 2)
        assert await pages.granted() == [("book", 1)]
        pages["book", 1].result().release()
        assert await pages.granted() == [("book", 1), ("book", 2)]


async def test_a_newcomer_is_dispatched_before_the_pages_that_wait() -> None:
    async with StandIn(slots=1) as replica, running_fleet(replica.url) as fleet, Pages(fleet) as pages:
        pages.send("book", 1, 2, 3)
        pages.send("letter")
        assert await pages.granted() == [("book", 1)]
        pages["book", 1].result().release()
        assert await pages.granted() == [("book", 1), ("letter", 1)]


async def test_a_page_that_gives_up_lets_the_next_one_have_its_turn() -> None:
    async with StandIn(slots=1) as replica, running_fleet(replica.url) as fleet, Pages(fleet) as pages:
        pages.send("book", 1, 2, 3)
        await pages.granted()
        pages["book", 2].cancel()
        await pages.granted()
        assert pages.waiting == 1
        pages["book", 1].result().release()
        assert await pages.granted() == [("book", 1), ("book", 3)]


async def test_a_page_cancelled_at_the_moment_of_its_grant_gives_the_slot_to_the_next() -> None:
    async with StandIn(slots=1) as replica, running_fleet(replica.url) as fleet, Pages(fleet) as pages:
        pages.send("book", 1, 2, 3)
        await pages.granted()
        pages["book", 1].result().release()  # grants the slot to page 2 …
        pages["book", 2].cancel()  # … which has not run since
        assert await pages.granted() == [("book", 1), ("book", 3)]
        assert pages["book", 2].cancelled()
        pages["book", 3].result().release()
        assert fleet.free_slots(GENERIC.serves) == 1


async def test_a_page_that_is_being_cancelled_is_granted_nothing() -> None:
    async with StandIn(slots=1) as replica, running_fleet(replica.url) as fleet, Pages(fleet) as pages:
        pages.send("book", 1, 2, 3)
        await pages.granted()
        pages["book", 2].cancel()  # it has not run since …
        pages["book", 1].result().release()  # … when the slot gets free
        assert await pages.granted() == [("book", 1), ("book", 3)]


async def test_a_page_waits_for_another_lane_than_the_one_that_failed_it() -> None:
    async with (
        StandIn(slots=1) as one,
        StandIn(slots=1) as two,
        running_fleet(one.url, two.url) as fleet,
        Pages(fleet) as pages,
    ):
        pages.send("first")
        await pages.granted()
        busy = pages["first", 1].result()
        (free,) = (lane.id for lane in fleet.lanes() if lane.id != busy.lane.id)
        pages.send("unlucky", avoid=(free,))
        assert await pages.granted() == [("first", 1)]
        pages.send("other")  # it is not held up by the page before it
        assert await pages.granted() == [("first", 1), ("other", 1)]
        busy.release()
        await pages.granted()
        assert pages["unlucky", 1].result().lane.id == busy.lane.id


async def test_a_lane_that_failed_the_page_is_used_where_no_other_is_up() -> None:
    async with StandIn() as replica, running_fleet(replica.url) as fleet, Pages(fleet) as pages:
        pages.send("unlucky", avoid=tuple(lane.id for lane in fleet.lanes()))
        assert await pages.granted() == [("unlucky", 1)]


async def test_full_lanes_of_one_profile_do_not_hold_up_another() -> None:
    async with (
        StandIn(slots=1) as general,
        StandIn(slots=2, model=CPU_MODEL) as cpu,
        running_fleet(general.url, cpu.url) as fleet,
        Pages(fleet) as pages,
    ):
        pages.send("book", 1, 2)
        pages.send("letter", 1, 2, profile=CPU)  # its second page comes after the book's, which waits
        assert await pages.granted() == [("book", 1), ("letter", 1), ("letter", 2)]
        assert pages["letter", 2].result().lane.endpoint == cpu.url
