"""The fleet: every lane that this gateway knows, and the choice of one for the next attempt."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator

from app.errors import LaneUnknown
from app.fleet.attempt import Attempt
from app.fleet.desired import Desired, DesiredHere
from app.fleet.endpoint import Endpoint
from app.fleet.lane import Lane
from app.fleet.pool import Pool
from app.fleet.shares import Rivals, Shares
from app.fleet.view import LaneView
from app.settings import Settings

Serves = Callable[[str], bool]
"""Whether a model is one that the page's profile serves."""


class Fleet:
    """Lives in one event loop; nothing here is safe from another thread."""

    def __init__(self, settings: Settings, desired: Desired | None = None) -> None:
        """`desired`: what operators want, shared with other gateways; None: kept here and forgotten at the end."""
        self._settings = settings
        self._desired = desired or DesiredHere()
        self._desired.on_change(self._obey)
        self._pools: dict[Serves, Pool] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._callbacks: list[Callable[[], None]] = []
        self._shares: Shares | None = None

    async def start(self) -> None:
        """Add the endpoints of the settings and begin to probe them. Raises `StartError` if one is no valid URL."""
        for url in self._settings.endpoints:
            self.add_endpoint(url)

    async def stop(self) -> None:
        """Forget all endpoints and close their connections; attempts still in flight fail."""
        for url in list(self._endpoints):
            self.remove_endpoint(url)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def add_endpoint(self, url: str, *, own: bool = False) -> None:
        """Probe `url` from now on; nothing happens if it is known. `own`: a replica that this gateway started.

        Raises `StartError` if it is no valid URL.
        """
        if url not in self._endpoints:
            endpoint = Endpoint(
                url,
                self._settings,
                own=own,
                on_change=self._changed,
                on_capacity=self.reshare,
                on_lanes=self._lanes_changed,
            )
            self._endpoints[url] = endpoint
            self._lanes_changed()
            task = asyncio.create_task(endpoint.run(), name=f"probe {endpoint.shown}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def remove_endpoint(self, url: str) -> None:
        """No new attempts there; those in flight go on. Added again, it is a new endpoint."""
        if endpoint := self._endpoints.pop(url, None):
            endpoint.remove()
            self._lanes_changed()

    async def drain(self, lane: str) -> None:
        """No new attempts on the lane of this id, on any gateway; those in flight go on. Raises `LaneUnknown`."""
        self._known(lane)
        await self._desired.drain(lane)

    async def resume(self, lane: str) -> None:
        """Probe a drained lane and let it take pages again, few at first. Raises `LaneUnknown`."""
        self._known(lane)
        await self._desired.resume(lane)

    def note_down(self, url: str) -> None:
        """The process behind `url` is known to be dead: no attempt needs to find out."""
        if endpoint := self._endpoints.get(url):
            endpoint.down()

    def note_up(self, url: str) -> None:
        """A new process behind `url` says that it is ready: it is probed at once."""
        if endpoint := self._endpoints.get(url):
            endpoint.up()

    def share_with(self, rivals: Rivals, pool_of: Callable[[str], str | None]) -> None:
        """Other gateways use the lanes too. `pool_of` names the pool of a model's lanes, None where it has none."""
        self._shares = Shares(rivals, pool_of)
        self.reshare()

    def reshare(self) -> None:
        """Divide the lanes again; to be called when the rivals, or what they want, may have changed."""
        if self._shares is not None:
            self._shares.deal(self._lanes())
            self._changed()

    def lanes(self) -> list[LaneView]:
        return [lane.view() for lane in self._lanes()]

    def models(self) -> set[str]:
        """Models of all lanes that have ever said theirs, whatever their state."""
        return {lane.model for lane in self._lanes() if lane.model is not None}

    def has_lanes(self, serves: Serves, avoid: Collection[str] = ()) -> bool:
        """Whether a lane that serves takes pages, be it full; lanes in `avoid` don't count."""
        return any(lane.capacity for lane in self._pool(serves).lanes if lane.id not in avoid)

    def capacity(self, serves: Serves) -> int:
        """Attempts that all gateways together may have in flight now on the lanes that serve."""
        return sum(lane.capacity for lane in self._pool(serves).lanes)

    def window(self, serves: Serves) -> int:
        """Attempts that this gateway may have in flight now on the lanes that serve."""
        return sum(lane.allowed for lane in self._pool(serves).lanes)

    def free_slots(self, serves: Serves) -> int:
        """Attempts that `acquire` would grant now."""
        return sum(lane.free for lane in self._pool(serves).lanes)

    def acquire(self, serves: Serves, avoid: Collection[str] = ()) -> Attempt | None:
        """Take a slot of the least-loaded lane that serves; None if none is free.

        `avoid` holds ids of lanes not to use. The attempt holds its slot until its `with` block ends, or `release`.
        Where this gateway has no share of these lanes it may have one attempt in flight there all the same: what it
        has claimed must end, and a page that one lane has failed must get to another.
        """
        lane = self._pool(serves).choose(time.monotonic(), avoid)
        return None if lane is None else Attempt(lane)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback`, in the loop, whenever a slot may have become free or a lane changes its state."""
        self._callbacks.append(callback)

    def _lanes(self) -> Iterator[Lane]:
        return (lane for endpoint in self._endpoints.values() for lane in endpoint.lanes)

    def _pool(self, serves: Serves) -> Pool:
        """Made once: to ask for each page which lanes serve would cost more than to choose among them."""
        pool = self._pools.get(serves)
        if pool is None:
            lanes = [lane for lane in self._lanes() if lane.model is not None and serves(lane.model)]
            pool = self._pools[serves] = Pool(lanes)
        return pool

    def _known(self, lane: str) -> None:
        if all(known.id != lane for known in self._lanes()):
            raise LaneUnknown

    def _obey(self) -> None:
        for endpoint in self._endpoints.values():
            endpoint.obey(self._desired.drained())

    def _lanes_changed(self) -> None:
        self._pools.clear()
        self._obey()
        self.reshare()

    def _changed(self) -> None:
        for callback in self._callbacks:
            callback()
