"""Several gateways, each a process of its own with a data directory of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.standins import Call, StandIn
from tests.system.gateway import Gateway, running_gateway
from tests.waiting import until

KEY_SETTING = "PAGEFLEET_ENDPOINT_API_KEY"
"""What replicas tell gateways apart by."""


@asynccontextmanager
async def running_gateways(
    folder: Path, count: int, replicas: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[list[Gateway]]:
    """Start `count` gateways on the same replicas; they are up, and know each other, when the block begins."""
    async with AsyncExitStack() as stack:
        started = (
            stack.enter_async_context(
                running_gateway(folder / _name(number), replicas, {**environment, KEY_SETTING: _name(number)})
            )
            for number in range(count)
        )
        gateways = await asyncio.gather(*started)
        for gateway in gateways:
            await gateway_up(gateway, len(replicas))
            await knows(gateway, count)
        yield list(gateways)


def calls_of(number: int, replica: StandIn) -> list[Call]:
    """Calls that a replica had from a gateway, by its place in the list."""
    return [call for call in replica.calls if call.headers["authorization"] == f"Bearer {_name(number)}"]


def _name(number: int) -> str:
    return f"gateway-{number}"


async def gateway_up(gateway: Gateway, lanes: int) -> None:
    """Return when so many lanes of `gateway` take pages; needs no key."""

    async def up() -> bool:
        return bool((await gateway.client.get("/readyz")).json().get("lanes_up") == lanes)

    await until(up)


async def knows(gateway: Gateway, count: int) -> None:
    """Return when `gateway` knows of `count` gateways that live, itself included."""

    async def heard() -> bool:
        return await gateway.metric("pagefleet_gateways") == count

    await until(heard)
