"""Group commit: what arrives while a write runs shares the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from app.errors import StoreUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_GROUP = 500
"""Bounds how long one transaction holds the writer."""


class GroupCommit(Generic[Item, Result]):
    """Writes items in groups, in the order of their arrival, without waiting for a group to fill."""

    def __init__(self, write: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]]) -> None:
        """`write` makes a group durable and returns one result for each item."""
        self._write = write
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """The result of `item` once it is durable; raises what `write` raises."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await future

    async def drain(self) -> None:
        """Wait until all that was submitted is written."""
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:_MAX_GROUP], self._waiting[_MAX_GROUP:]
            await self._write_group(group)

    async def _write_group(self, group: Sequence[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._write([item for item, _ in group])
        except Exception as error:
            if len(group) > 1 and not isinstance(error, StoreUnavailable):
                for one in group:  # an item that can't be written must not fail its neighbours
                    await self._write_group([one])
                return
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), result in zip(group, results, strict=True):
                if not future.done():  # its caller was cancelled
                    future.set_result(result)
