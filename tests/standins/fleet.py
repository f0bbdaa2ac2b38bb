"""Stand-ins as processes of their own, and the side that controls them."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Self

import httpx

from app.lifeline import child_environment
from tests.standins.replies import Reply

START_SECONDS = 30
"""Deadline for the line that says that a stand-in listens; usually it takes 0.2 s."""


class StandInProcess:
    """One stand-in; it keeps its port over all its lives. `arguments` are those of `python -m tests.standins`."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        self.url = ""
        self._arguments = arguments
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Listen; as fresh as at the first start, whatever was ordered before."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.standins", *self._arguments, "--port", str(self._port)),
            stdout=asyncio.subprocess.PIPE,
            env=child_environment(),
        )
        assert self._process.stdout is not None
        line = (await asyncio.wait_for(self._process.stdout.readline(), START_SECONDS)).decode()
        assert line.startswith("standin listening on "), f"start line: {line!r}"
        self.url = line.split()[-1]
        self._port = int(self.url.rpartition(":")[2])

    async def kill(self) -> None:
        """`kill -9`, unless it has ended already."""
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()
            # Closes the pipe's transport, which asyncio otherwise leaves to the garbage collector.
            self._process._transport.close()  # type: ignore[attr-defined]

    async def ended(self) -> int:
        """Wait for the end of the process; its exit status."""
        assert self._process is not None
        return await self._process.wait()

    async def plan(self, *replies: Reply, rank: int | None = None) -> None:
        """Answer the next calls like this."""
        await self.order(rank, plan=[_fields(reply) for reply in replies])

    async def always(self, reply: Reply | None, rank: int | None = None) -> None:
        """Answer every call like this; None: with a good answer again."""
        await self.order(rank, always=None if reply is None else _fields(reply))

    async def mix(self, *shares: tuple[float, Reply], rank: int | None = None) -> None:
        """Answer this share of the calls like this, by chance."""
        await self.order(rank, mix=[(share, _fields(reply)) for share, reply in shares])

    async def order(self, rank: int | None = None, **changes: Any) -> None:
        """Any change that `control.py` describes. Raises `AssertionError` if it is refused."""
        orders = changes if rank is None else {"rank": rank, **changes}
        async with self._client() as client:
            response = await client.post("/standin", json=orders)
        assert response.status_code == 200, response.text

    async def counters(self) -> dict[str, Any]:
        """Since its start: `calls`, `peak`, `disconnects`, …, and `ranks` with those of each."""
        async with self._client() as client:
            counters: dict[str, Any] = (await client.get("/standin")).json()
        return counters

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, trust_env=False)


class StandInFleet:
    """`count` stand-ins with the same options, each on a free port; an `async with` block is their whole life.

    The options are those of the command line: `StandInFleet(2, slots=4, hide_slots=True, fault=["500:0.1", "cut"])`.
    All end with the block, and with this process, `kill -9` included.
    """

    def __init__(self, count: int, **options: Any) -> None:
        arguments = tuple(_arguments(options))
        self.replicas = [StandInProcess(arguments) for _ in range(count)]

    @property
    def urls(self) -> list[str]:
        return [replica.url for replica in self.replicas]

    def __getitem__(self, number: int) -> StandInProcess:
        return self.replicas[number]

    def __iter__(self) -> Iterator[StandInProcess]:
        return iter(self.replicas)

    def __len__(self) -> int:
        return len(self.replicas)

    async def __aenter__(self) -> Self:
        try:
            await asyncio.gather(*(replica.start() for replica in self.replicas))
        except BaseException:
            await self._kill()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._kill()

    async def _kill(self) -> None:
        await asyncio.gather(*(replica.kill() for replica in self.replicas))

    async def calls(self) -> list[int]:
        """Calls that each has had since its start."""
        counters = await asyncio.gather(*(replica.counters() for replica in self.replicas))
        return [each["calls"] for each in counters]


def _arguments(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, list) else [value]:
            if each is not False:
                yield option
            if not isinstance(each, bool):
                yield str(each)


def _fields(reply: Reply) -> dict[str, Any]:
    return asdict(reply)
