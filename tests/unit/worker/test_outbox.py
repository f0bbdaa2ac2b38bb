"""Writes that outlast an absence of the store."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from app.errors import StoreUnavailable
from app.worker import outbox
from app.worker.outbox import Outbox
from tests.waiting import until


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "STORE_RETRY_SECONDS", 0.01)


class Store:
    """Takes what is written unless it is away; a write takes a moment."""

    def __init__(self) -> None:
        self.away = True
        self.tries: Counter[int] = Counter()
        self.writing = 0
        self.most_writing = 0

    def write(self, number: int) -> Callable[[], Awaitable[int]]:
        async def write() -> int:
            self.tries[number] += 1
            self.writing += 1
            self.most_writing = max(self.most_writing, self.writing)
            try:
                await asyncio.sleep(0.001)
                if self.away:
                    raise StoreUnavailable("away")
                return number
            finally:
                self.writing -= 1

        return write


async def test_a_write_that_the_store_takes_is_not_repeated() -> None:
    store = Store()
    store.away = False
    assert await Outbox().send(store.write(1)) == 1
    assert store.tries[1] == 1


async def test_one_write_tries_the_store_while_it_is_away_and_all_follow_when_it_is_back() -> None:
    box, store = Outbox(), Store()
    writes = [asyncio.create_task(box.send(store.write(number))) for number in range(50)]
    await until(lambda: store.tries.total() >= 50)
    store.most_writing = 0
    await until(lambda: store.tries.total() >= 60)
    assert store.most_writing == 1
    store.away = False
    assert await asyncio.gather(*writes) == list(range(50))
    assert store.most_writing > 1


async def test_a_write_that_is_given_up_leaves_the_try_to_another() -> None:
    box, store = Outbox(), Store()
    writes = [asyncio.create_task(box.send(store.write(number))) for number in range(3)]
    await until(lambda: store.tries.total() > 3)
    for write in writes[:2]:
        write.cancel()
    store.away = False
    assert await writes[2] == 2


async def test_a_fault_of_our_own_is_raised_at_once() -> None:
    async def write() -> None:
        raise OverflowError

    with pytest.raises(OverflowError):
        await Outbox().send(write)
