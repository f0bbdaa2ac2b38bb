"""An event loop whose clock jumps to the next timer instead of waiting for it."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")


class _JumpingClock(selectors.SelectSelector):
    """Where the loop would sleep, time passes; nothing is ever read from a socket."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits and no timer is set")
        self.now += timeout
        return []


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`; `time.monotonic` starts at 0 and moves by the loop's timers alone.

    The coroutine may start no threads and open no sockets.
    """
    clock = _JumpingClock()
    with (
        patch("time.monotonic", clock.monotonic),
        asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(clock)) as runner,
    ):
        return runner.run(main)
