"""Pages that wait for a lane, matched with lanes that have room."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from app.documents.records import Claim
from app.fleet import Attempt, Fleet
from app.profiles import Profile
from app.worker.fair_queue import FairQueue


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    claim: Claim
    profile: Profile
    avoid: Collection[str]
    granted: "asyncio.Future[Attempt]"


class Dispatcher:
    """Pull: pages wait in one fair order, and a lane with room takes the first that it serves.

    `pump()` must be called whenever a lane may have got room.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._queue: FairQueue[_Waiting] = FairQueue()

    async def attempt(self, claim: Claim, profile: Profile, avoid: Collection[str] = ()) -> Attempt:
        """Wait for the page's turn and a lane; the caller enters the attempt, which gives its slot back.

        `avoid`: ids of lanes that failed the page. They are used all the same while no other lane is up.
        """
        waiting = _Waiting(claim, profile, avoid, asyncio.get_running_loop().create_future())
        self._queue.push(claim, waiting)
        self.pump()
        try:
            return await waiting.granted
        except asyncio.CancelledError:
            self._queue.discard(claim, waiting)
            if waiting.granted.done() and not waiting.granted.cancelled():
                waiting.granted.result().release()
            raise

    def pump(self) -> None:
        """Give free lanes to waiting pages until one or the other runs out."""
        while granted := self._next():
            waiting, attempt = granted
            self._queue.serve(waiting.claim)
            waiting.granted.set_result(attempt)

    def forget(self, claim: Claim) -> None:
        """No page of this document is worked on any more."""
        self._queue.forget(claim)

    def _next(self) -> tuple[_Waiting, Attempt] | None:
        """The first page in fair order that some lane can take now, and its slot there."""
        full: set[str] = set()  # profiles whose every lane is taken: no need to ask for their next page
        for waiting in self._queue.in_order():
            if waiting.granted.done() or waiting.profile.name in full:
                continue
            attempt = self._slot(waiting)
            if attempt is not None:
                return waiting, attempt
            if not waiting.avoid:
                full.add(waiting.profile.name)
        return None

    def _slot(self, waiting: _Waiting) -> Attempt | None:
        serves = waiting.profile.serves
        if waiting.avoid and self._fleet.has_lanes(serves, avoid=waiting.avoid):
            return self._fleet.acquire(serves, avoid=waiting.avoid)
        return self._fleet.acquire(serves)
