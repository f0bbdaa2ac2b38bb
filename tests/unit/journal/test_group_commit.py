"""Group commit: who shares a write, and whose fault is whose."""

import asyncio
from collections.abc import Sequence

import pytest

from app.errors import StoreUnavailable
from app.journal.group_commit import GroupCommit


class Store:
    """Remembers its writes; refuses the items in `bad`, and everything while `down`."""

    def __init__(self) -> None:
        self.writes: list[list[int]] = []
        self.bad: set[int] = set()
        self.down = False

    async def write(self, group: Sequence[int]) -> list[int]:
        await asyncio.sleep(0.01)
        self.writes.append(list(group))
        if self.down:
            raise StoreUnavailable
        if self.bad & set(group):
            raise ValueError("bad item")
        return [item * 10 for item in group]


async def test_what_arrives_during_a_write_shares_the_next() -> None:
    store = Store()
    commits = GroupCommit(store.write)
    first = asyncio.create_task(commits.submit(1))
    await asyncio.sleep(0.005)

    results = await asyncio.gather(*[commits.submit(item) for item in range(2, 6)])

    assert (await first, results) == (10, [20, 30, 40, 50])
    assert store.writes == [[1], [2, 3, 4, 5]]


async def test_a_large_group_is_written_in_parts() -> None:
    store = Store()
    commits = GroupCommit(store.write)
    results = await asyncio.gather(*[commits.submit(item) for item in range(1200)])
    assert results == [item * 10 for item in range(1200)]
    assert [len(group) for group in store.writes] == [500, 500, 200]


async def test_an_item_that_cannot_be_written_fails_alone() -> None:
    store = Store()
    store.bad = {2}
    commits = GroupCommit(store.write)

    one, two, three = await asyncio.gather(*[commits.submit(item) for item in (1, 2, 3)], return_exceptions=True)

    assert (one, three) == (10, 30)
    assert isinstance(two, ValueError)


async def test_a_store_that_is_down_fails_the_group_without_another_try() -> None:
    store = Store()
    store.down = True
    commits = GroupCommit(store.write)

    results = await asyncio.gather(*[commits.submit(item) for item in (1, 2)], return_exceptions=True)

    assert [type(result) for result in results] == [StoreUnavailable, StoreUnavailable]
    assert store.writes == [[1, 2]]
    store.down = False
    assert await commits.submit(3) == 30


async def test_a_caller_that_leaves_takes_nothing_back() -> None:
    store = Store()
    commits = GroupCommit(store.write)
    leaving, staying = [asyncio.create_task(commits.submit(item)) for item in (1, 2)]
    await asyncio.sleep(0)
    leaving.cancel()

    assert await staying == 20
    assert store.writes == [[1, 2]]
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_drain_waits_for_everything_submitted() -> None:
    store = Store()
    commits = GroupCommit(store.write)
    await commits.drain()
    tasks = [asyncio.create_task(commits.submit(item)) for item in (1, 2)]
    await asyncio.sleep(0)
    await commits.drain()
    assert store.writes == [[1, 2]]
    assert await asyncio.gather(*tasks) == [10, 20]
