"""A stand-in replica that reads page codes: `python -m tests.crash.replica --port P --calls FILE`.

Each call that it begins is a line of FILE, so that they can be counted whenever the replica is killed.
"""

import argparse
import asyncio
import os
import random
from pathlib import Path
from typing import Any

from app.lifeline import die_with_parent
from tests.crash.codes import PageCode
from tests.standins import Call, Reply, StandIn

GIVEN_UP_SHARE = 0.7
"""Of the calls for hard pages. A page fails with the third: one in three."""
_GIVEN_UP = Reply(text="", finish_reason="length")


class CodeReader(StandIn):
    def __init__(self, calls: Path, **options: Any) -> None:
        super().__init__(keep_calls=False, **options)
        self._log = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def begin(self, call: Call, reply: Reply) -> Reply:
        code = PageCode.read(call.image)
        os.write(self._log, f"{code}\n".encode())
        given_up = code.hard and random.random() < GIVEN_UP_SHARE
        return _GIVEN_UP if given_up else Reply(text=str(code))


async def _main() -> None:
    die_with_parent()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--calls", type=Path, required=True)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.2, help="service time of a call")
    options = parser.parse_args()
    async with CodeReader(options.calls, port=options.port, slots=options.slots, seconds=options.seconds):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
