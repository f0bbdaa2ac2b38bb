"""`kill -9` at random moments."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from tests.crash.cluster import Cluster
from tests.crash.programs import Program
from tests.processes import children, command_line
from tests.waiting import until

GAP_SECONDS = (0.2, 3.0)
PAUSES_SECONDS = (0, 0, 0.5, 4)
"""Between a program's end and its next start; the longest is beyond the time in which gateways take over claims."""
ORPHAN_SECONDS = 10
"""In which the processes of a killed gateway must be gone."""

RENDER_PROCESS_SECONDS = 30
"""In which a service with customers must draw a page."""


class Target(StrEnum):
    GATEWAY = "gateway"
    RENDER_PROCESS = "render process"
    REPLICA = "replica"


_DECK = (Target.GATEWAY, Target.GATEWAY, Target.RENDER_PROCESS, Target.REPLICA)


class Killer:
    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.kills: Counter[Target] = Counter()
        self.orphans: set[int] = set()
        """Processes that outlived their gateway."""
        self._cluster = cluster
        self._rng = rng

    async def run(self, kills: int) -> None:
        """Kill, and start again what was killed.

        Raises `RuntimeError` where a program had ended by itself, or no page is drawn any more.
        """
        targets = self._targets()
        async with asyncio.TaskGroup() as revivals:
            for _ in range(kills):
                await asyncio.sleep(self._rng.uniform(*GAP_SECONDS))
                self._cluster.check()
                target = next(targets)
                if target is Target.RENDER_PROCESS:
                    await self._kill_render_process()
                else:
                    program = await self._running(target)
                    program.kill()
                    revivals.create_task(self._revive(program))
                    revivals.create_task(self._note_orphans(program))
                self.kills[target] += 1

    def _targets(self) -> Iterator[Target]:
        """Shuffled, and yet in fixed shares."""
        while True:
            yield from self._rng.sample(_DECK, len(_DECK))

    async def _running(self, target: Target) -> Program:
        programs = self._cluster.gateways if target is Target.GATEWAY else self._cluster.replicas
        await until(lambda: any(program.pid for program in programs))
        return self._rng.choice([program for program in programs if program.pid])

    async def _kill_render_process(self) -> None:
        try:
            await until(lambda: bool(self._render_processes()), RENDER_PROCESS_SECONDS)
        except TimeoutError:
            raise RuntimeError("no page is drawn any more") from None
        os.kill(self._rng.choice(self._render_processes()), signal.SIGKILL)

    def _render_processes(self) -> list[int]:
        gateways = [gateway.pid for gateway in self._cluster.gateways if gateway.pid]
        return [pid for gateway in gateways for pid in children(gateway) if "app.rendering.child" in command_line(pid)]

    async def _revive(self, program: Program) -> None:
        await asyncio.sleep(self._rng.choice(PAUSES_SECONDS))
        program.start()

    async def _note_orphans(self, program: Program) -> None:
        try:
            await until(lambda: not program.orphans(), ORPHAN_SECONDS)
        except TimeoutError:
            self.orphans.update(program.orphans())
