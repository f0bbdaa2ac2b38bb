"""The whole test: customers and a killer, then rest, then the checks."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.crash.checks import document_faults, rest_faults
from tests.crash.cluster import Cluster
from tests.crash.codes import PageCode
from tests.crash.customers import Customer, Trade
from tests.crash.killing import Killer
from tests.crash.service import Service
from tests.crash.stores import Store

SETTLE_SECONDS = 180
"""Deadline for all documents to end after the last kill."""


@dataclass(frozen=True)
class Report:
    figures: str
    faults: list[str]


async def crash_test(folder: Path, store: Store, kills: int, seed: int) -> Report:
    """Run the test in `folder`.

    Raises `RuntimeError` where a program ended without being killed, and `AssertionError` where a customer was given an
    answer that can't be; both in groups.
    """
    started = time.monotonic()
    cluster = Cluster(folder, store, random.Random())  # whatever the seed: tests may run side by side
    killer = Killer(cluster, random.Random(f"kills {seed}"))
    with cluster.running():
        async with Service(cluster.urls, random.Random(f"gateways {seed}")) as service:
            trade = Trade(service, random.Random(f"orders {seed}"))
            faults = await _trade_and_kill(trade, killer, kills)
            if not faults:
                cluster.check()
                faults += await document_faults(service, store, trade.customers)
                faults += await rest_faults(cluster, store)
    if killer.orphans:
        faults.append(f"processes outlived their gateway: {killer.orphans}")
    return Report(_figures(cluster, killer, trade, started), faults)


async def _trade_and_kill(trade: Trade, killer: Killer, kills: int) -> list[str]:
    """Return when all is quiet; the documents that did not come to their end."""
    async with asyncio.TaskGroup() as group:
        trading = group.create_task(trade.run())
        await killer.run(kills)
        trade.close()
        await asyncio.wait({trading}, timeout=SETTLE_SECONDS)
        trading.cancel()
    return _unsettled(trade)


def _unsettled(trade: Trade) -> list[str]:
    return [
        f"document {customer.document_id} of {customer.order} has not come to its end"
        for customer in trade.customers
        if not customer.done
    ]


def _figures(cluster: Cluster, killer: Killer, trade: Trade, started: float) -> str:
    customers = trade.customers
    kills = ", ".join(f"{count} {target}" for target, count in killer.kills.items())
    wishes = ", ".join(f"{count} {wish}" for wish, count in Counter(each.order.wish for each in customers).items())
    read = {str(code) for each in customers for code in _easy_pages_read(each)}
    calls = Counter(cluster.calls())
    again = sum(calls[page] - 1 for page in read)
    reconnects = sum(each.follower.reconnects for each in customers if each.follower)
    parts = (
        f"{killer.kills.total()} kills ({kills}) in {time.monotonic() - started:.0f} s",
        f"{len(customers)} documents ({wishes}; {sum(each.retried for each in customers)} retried)",
        f"{sum(each.order.pages for each in customers)} pages, {calls.total()} calls of replicas",
        f"{again} of {len(read)} pages read again ({again / max(1, len(read)):.1%})",
        f"streams taken up again {reconnects} times",
    )
    return "; ".join(parts)


def _easy_pages_read(customer: Customer) -> list[PageCode]:
    """Those of hard pages are left out, which replicas give up on by intention."""
    events = customer.follower.events if customer.follower else []
    codes = customer.order.codes
    return [codes[event.page] for event in events if event.page and not codes[event.page].hard]
