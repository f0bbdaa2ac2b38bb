"""Lanes that several gateways use: every gateway works out the same division of their windows, and none asks another.

A static split would leave slots idle, and gateways that only look at a common snapshot would all run to the same lane.
So each tells how many pages it could work on, and the division follows what all have told, each time they tell.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from app.fleet.lane import Lane


class Rivals(Protocol):
    """The gateways that use the same replicas, this one among them."""

    @property
    def owner(self) -> str:
        """Id of this gateway."""

    def wants(self, pool: str, /) -> Mapping[str, int]:
        """By id of each gateway that lives, pages that it could work on now on the lanes of a pool."""


class Shares:
    """Keeps the shares of this gateway."""

    def __init__(self, rivals: Rivals, pool_of: Callable[[str], str | None]) -> None:
        """`pool_of` names the pool of a model's lanes; None where no page can be read on them."""
        self._rivals = rivals
        self._pool_of = pool_of

    def deal(self, lanes: Iterable["Lane"]) -> None:
        """Set the share of each lane. Lanes that this gateway has started are its own as a whole.

        A gateway that is alone has all and computes nothing.
        """
        pools: defaultdict[str | None, list[Lane]] = defaultdict(list)
        for lane in lanes:
            if not lane.own and lane.model is not None:
                pools[self._pool_of(lane.model)].append(lane)
        for pool, members in pools.items():
            wants = {} if pool is None else self._rivals.wants(pool)
            slots = lane_slots({lane.id: lane.capacity for lane in members}, wants) if len(wants) > 1 else {}
            for lane in members:
                lane.set_share(slots[lane.id][self._rivals.owner] if slots else None)


def lane_slots(windows: Mapping[str, int], wants: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """By lane, the slots of each gateway there. They add up to the lane's window.

    Each gateway has the same part of every lane, up to whole slots: those go to the gateways by rendezvous hashing, so
    that a lane or a gateway that comes or goes moves few others. There must be a gateway.
    """
    total = sum(windows.values())
    parts = divide(total, wants)
    slots = {
        lane: {gateway: window * part // (total or 1) for gateway, part in parts.items()}
        for lane, window in windows.items()
    }
    owed = {gateway: part - sum(lane[gateway] for lane in slots.values()) for gateway, part in parts.items()}
    for lane in sorted(slots):
        rest = windows[lane] - sum(slots[lane].values())
        while rest:
            for gateway in _ranked(lane, [gateway for gateway in owed if owed[gateway]])[:rest]:
                slots[lane][gateway] += 1
                owed[gateway] -= 1
                rest -= 1
    return slots


def divide(total: int, wants: Mapping[str, int]) -> dict[str, int]:
    """Max-min fair parts of `total` slots, by gateway: nobody gets less for what another wants beyond an equal part.

    What nobody wants is divided evenly on top, ready for what comes next; so the parts add up to `total`.
    """
    parts: dict[str, int] = {}
    left = total
    for index, (want, gateway) in enumerate(sorted((want, gateway) for gateway, want in wants.items())):
        parts[gateway] = min(want, left // (len(wants) - index))
        left -= parts[gateway]
    for index, gateway in enumerate(sorted(parts)):
        extra = left // (len(parts) - index)
        parts[gateway] += extra
        left -= extra
    return parts


def _ranked(lane: str, gateways: Iterable[str]) -> list[str]:
    """Highest random weight first (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998)."""
    return sorted(gateways, key=lambda gateway: hashlib.sha256(f"{lane} {gateway}".encode()).digest())
