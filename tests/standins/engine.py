"""An engine: one data-parallel rank of a stand-in, with slots and a line before them."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.standins.script import Script


class Engine:
    """All public attributes but the slots may be changed at any time."""

    def __init__(self, slots: int, chance: random.Random) -> None:
        self.slots = slots
        self.script = Script(chance)
        """Replies of this rank alone; the stand-in's plan goes first."""
        self.foreign = 0
        """Requests of other clients that `/metrics` shows as running."""
        self.kv_usage = 0.0
        """Share of the KV cache in use, as `/metrics` shows it."""
        self.preemptions = 0
        """Preemptions so far, as `/metrics` shows them."""
        self.calls = 0
        self.present = 0
        """Calls that are here now: running, or waiting for a slot."""
        self.running = 0
        self.peak = 0
        """Most calls that were here at once."""
        self._slots = asyncio.Semaphore(slots)
        self._stuck = 0
        self._steps = 0

    @property
    def waiting(self) -> int:
        return self.present - self.running

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait in line for a slot and hold it."""
        self.present += 1
        self.peak = max(self.peak, self.present)
        try:
            async with self._slots:
                self.running += 1
                try:
                    yield
                finally:
                    self.running -= 1
        finally:
            self.present -= 1

    async def hang(self) -> None:
        """For ever, without a step."""
        self._stuck += 1
        try:
            await asyncio.Event().wait()
        finally:
            self._stuck -= 1

    def step(self) -> None:
        self._steps += 1

    def read_steps(self) -> int:
        """The step counter, which moves between two readings while any call runs that does not hang."""
        self._steps += self.running - self._stuck
        return self._steps
