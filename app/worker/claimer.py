"""Claims pages a little ahead of the lanes."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.documents.records import Claim
from app.errors import StoreUnavailable
from app.fleet import Fleet
from app.journal import Journal
from app.profiles import Profile, Profiles
from app.settings import Settings
from app.telemetry.logs import get_logger
from app.worker.active import ActivePage

POLL_SECONDS = 1.0
"""Safety net only: claims are made when a page is queued or a lane gets room."""
RETRY_SECONDS = 0.5
"""Pause after a round of claims that failed."""
COMPARE_SECONDS = 60.0
"""Safety net only: whatever went wrong, no page stays claimed for longer that nobody works on."""

MIN_LOOK_AHEAD_PAGES = 2
"""Images held beyond the windows, which bound them otherwise to twice their sum: one lane of one slot needs two."""
RESERVED_PAGES = 1
"""Part of that bound which is kept for documents that have just come."""

_logger = get_logger("worker")


class Claimer:
    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        fleet: Fleet,
        profiles: Profiles,
        active: Mapping[Claim, ActivePage],
        begin: Callable[[Claim], None],
    ) -> None:
        """`begin` is called with each page claimed and puts it into `active`, where it stays until it has ended."""
        self._settings = settings
        self._journal = journal
        self._fleet = fleet
        self._profiles = profiles
        self._active = active
        self._begin = begin
        self._wake = asyncio.Event()
        self._hungry = set(profiles.names)
        self._newcomers = set(profiles.names)
        self._polled_at = time.monotonic()
        self._doubts = 0
        self._doubts_settled = 0
        self._compared_at = time.monotonic()
        self._store_away = False
        self._stopping = False
        self._claiming: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._journal.changes.on_queued(self._on_queued)
        self._journal.changes.on_doubt(self.doubt)
        self._claiming = asyncio.create_task(self._claim_forever(), name="claims")

    async def stop(self) -> None:
        """A claim that is being made is waited for, and its pages begin."""
        self._stopping = True
        self.wake()
        if self._claiming is not None:
            await self._claiming

    def wake(self) -> None:
        """There may be room."""
        self._wake.set()

    def doubt(self) -> None:
        """The store may see our claims otherwise than we do."""
        self._doubts += 1
        self.wake()

    def wants(self) -> dict[str, int]:
        """By profile, pages that this gateway could work on, those that it has included.

        It wants as many as its lanes and its own limit let it have for as long as the queue may hold more: from when a
        page is queued to a claim that finds none.
        """
        have = Counter(page.claim.profile for page in self._active.values())
        hungry = set() if self._stopping else self._hungry
        return {
            profile.name: min(
                self._settings.max_concurrent_pages if profile.name in hungry else have[profile.name],
                self._fleet.capacity(profile.serves),
            )
            for profile in self._profiles
        }

    def _on_queued(self) -> None:
        self._hungry.update(self._profiles.names)
        self._newcomers.update(self._profiles.names)
        self.wake()

    async def _claim_forever(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                await self._claim_all()
            except StoreUnavailable as error:
                if not self._store_away:
                    self._store_away = True
                    _logger.error("claims wait for the store", detail=error.detail)
                self._doubts += 1  # a claim may have been made, and only its answer lost
                await self._before_next_round()
            except Exception:
                # A fault of ours must cost one round, not all reading from here on.
                _logger.exception("claims failed unexpectedly")
                await self._before_next_round()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)

    async def _before_next_round(self) -> None:
        await asyncio.sleep(RETRY_SECONDS)
        self._on_queued()  # what the failed round would have claimed still waits

    async def _claim_all(self) -> None:
        if self._doubts > self._doubts_settled or time.monotonic() - self._compared_at >= COMPARE_SECONDS:
            await self._rejoin()
        self._poll()
        while not self._stopping and await self._claim_round():
            pass

    async def _rejoin(self) -> None:
        """Compare our claims with the store's: what we don't work on is queued again, what is not ours any more ends.

        Not what is on its way to the store, which knows best what becomes of it.
        """
        doubts = self._doubts  # those that come up meanwhile are new
        held = await self._journal.rejoin(list(self._active))
        self._doubts_settled = doubts
        self._compared_at = time.monotonic()
        lost = [page for page in self._active.values() if page.claim not in held and not page.storing]
        for page in lost:
            page.task.cancel()
        if lost:
            _logger.warning("claims were lost", held=len(held), lost=len(lost))
        if self._store_away:
            self._store_away = False
            _logger.info("claims go on", held=len(held))

    def _poll(self) -> None:
        """Now and then look into the queue without having been told of a page."""
        now = time.monotonic()
        if now - self._polled_at >= POLL_SECONDS:
            self._polled_at = now
            self._hungry.update(profile.name for profile in self._profiles if self._room(profile).ahead > 0)

    async def _claim_round(self) -> bool:
        """Claim once for each profile that has room; whether anything was claimed."""
        claimed = 0
        for profile in self._profiles:
            claims = await self._claim_for(profile)
            claimed += len(claims)
            for claim in claims:
                self._begin(claim)
        return claimed > 0

    async def _claim_for(self, profile: Profile) -> list[Claim]:
        room = self._room(profile)
        if room.ahead > 0:
            return await self._claim_ahead(profile.name, room.ahead)
        if room.reserved <= 0 or profile.name not in self._newcomers:
            return []
        self._newcomers.discard(profile.name)
        claims = await self._journal.claim(room.reserved, [profile.name], without=room.waiting)
        if len(claims) == room.reserved:
            self._newcomers.add(profile.name)  # there may be more of them
        return claims

    async def _claim_ahead(self, profile: str, limit: int) -> list[Claim]:
        if profile not in self._hungry:
            return []
        self._hungry.discard(profile)  # before the claim: a page may be queued meanwhile
        claims = await self._journal.claim(limit, [profile])
        if claims:
            self._hungry.add(profile)  # fewer than asked for: some of a document's pages may not have been due
        return claims

    def _room(self, profile: Profile) -> "_Room":
        window = self._fleet.window(profile.serves)
        if window == 0:
            return _Room(0, 0, set())
        pages = [page for page in self._active.values() if page.claim.profile == profile.name and not page.storing]
        waiting = [page.claim.document_id for page in pages if page.waiting]
        limit = min(
            max(2 * window, window + MIN_LOOK_AHEAD_PAGES) - len(pages),
            self._settings.max_concurrent_pages - len(self._active),
        )
        look_ahead = self._fleet.free_slots(profile.serves) + self._settings.render_workers - len(waiting)
        return _Room(min(look_ahead, limit - RESERVED_PAGES), limit, set(waiting))


@dataclass(frozen=True, slots=True)
class _Room:
    """Pages of one profile that may be claimed now."""

    ahead: int
    """Of any document: the look-ahead aims at free slots plus render workers."""
    reserved: int
    """Of documents none of whose pages wait here: a newcomer need not wait until the look-ahead has room."""
    waiting: set[str]
    """Ids of documents that have pages waiting here, drawn or being drawn."""
