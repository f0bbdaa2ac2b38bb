import asyncio
from collections.abc import Awaitable, Callable

import pytest
from prometheus_client import REGISTRY

from app.errors import RenderFailed
from app.rendering import Drawing
from app.worker.images import ImageBuffer
from tests.unit.worker.parts import IMAGE_BYTES, drawing
from tests.waiting import until

WORKERS = 2


def buffer_of(images: int) -> ImageBuffer:
    """A buffer that is full when it holds `images`."""
    return ImageBuffer(images * IMAGE_BYTES, WORKERS)


def held_bytes() -> float | None:
    return REGISTRY.get_sample_value("pagefleet_image_buffer_bytes")


class Holders:
    """Pages that draw an image and hold it until they are told to let go."""

    def __init__(self, buffer: ImageBuffer, draw: Callable[[], Awaitable[Drawing]]) -> None:
        self.holding = 0
        self._buffer = buffer
        self._draw = draw
        self._letting_go = asyncio.Semaphore(0)
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, count: int) -> None:
        self._tasks += [asyncio.create_task(self._hold()) for _ in range(count)]

    async def _hold(self) -> None:
        async with self._buffer.hold(self._draw):
            self.holding += 1
            await self._letting_go.acquire()
            self.holding -= 1

    def let_go(self, count: int = 1) -> None:
        for _ in range(count):
            self._letting_go.release()

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def settle(self) -> None:
        """Let everybody come as far as they can."""
        for _ in range(20):
            await asyncio.sleep(0)


async def draw() -> Drawing:
    await asyncio.sleep(0)
    return drawing()


async def test_pages_are_drawn_as_long_as_there_is_room() -> None:
    holders = Holders(buffer_of(8), draw)
    holders.add(8)
    await holders.settle()
    assert holders.holding == 8
    holders.let_go(8)
    await holders.settle()


async def test_above_the_limit_a_page_waits_until_an_image_is_let_go() -> None:
    holders = Holders(buffer_of(1), draw)
    holders.add(1)
    await holders.settle()
    holders.add(1)
    await holders.settle()
    assert holders.holding == 1
    holders.let_go()
    await until(lambda: holders.holding == 1)
    holders.let_go()
    await until(lambda: holders.holding == 0)


async def test_the_limit_is_passed_by_one_image_a_render_worker_at_most() -> None:
    holders = Holders(buffer_of(3), draw)
    holders.add(50)
    await holders.settle()
    assert 3 <= holders.holding <= 3 + WORKERS - 1
    for _ in range(50):
        holders.let_go()
        await holders.settle()
        assert holders.holding <= 3 + WORKERS - 1
    assert holders.holding == 0


async def test_a_page_that_can_not_be_drawn_takes_no_room() -> None:
    async def fail() -> Drawing:
        raise RenderFailed

    buffer = buffer_of(1)
    for _ in range(WORKERS + 1):
        with pytest.raises(RenderFailed):
            async with buffer.hold(fail):
                pass
    async with asyncio.timeout(5), buffer.hold(draw):
        pass


async def test_pages_cancelled_while_they_wait_draw_or_hold_leave_the_room_to_others() -> None:
    drawers = 0

    async def draw_for_ever() -> Drawing:
        nonlocal drawers
        drawers += 1
        await asyncio.Event().wait()
        raise AssertionError

    buffer = buffer_of(1)
    holders, stuck = Holders(buffer, draw), Holders(buffer, draw_for_ever)
    stuck.add(1)
    holders.add(1)
    await until(lambda: holders.holding == 1 and drawers == 1)
    holders.add(10)
    for each in (stuck, holders):
        await each.settle()
        each.cancel()
        await each.settle()
    async with asyncio.timeout(5), buffer.hold(draw):
        assert held_bytes() == IMAGE_BYTES
    assert held_bytes() == 0
