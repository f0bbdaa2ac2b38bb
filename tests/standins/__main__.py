"""Stand-ins by hand: `python -m tests.standins --help`."""

import argparse
import asyncio
import os
import random
import signal
import sys

from app.lifeline import child_environment, die_with_parent
from tests.standins.call import name_call
from tests.standins.replies import Fault, Reply, reply_named
from tests.standins.server import StandIn
from tests.standins.service_time import parse_service_time

READY = "standin listening on "

_DESCRIPTION = """\
A scripted stand-in for a vLLM server: /health, /v1/models, /metrics and /v1/chat/completions, with slots,
service times, data-parallel ranks and faults to order. It prints one line when it listens:

    standin listening on http://127.0.0.1:PORT
"""

_EPILOG = f"""\
service times, in seconds
  0.25                                always the same
  lognormal:MEAN,CV[,LEAST[,MOST]]    by mean and coefficient of variation, clipped
  bimodal:USUAL,RARE,SHARE            RARE for this share of the calls
  image:LEAST,MOST                    told by the page: as long on every replica and each time

faults
  an HTTP status (500, 429 …), a finish reason (length, abort), or one of
  {", ".join(sorted(Fault)[: len(Fault) // 2])},
  {", ".join(sorted(Fault)[len(Fault) // 2 :])}

while it runs
  curl URL/standin                                         counters, by rank too
  curl URL/standin -d '{{"always": {{"fault": "hang"}}}}'      every call hangs from now on; null: good again
  curl URL/standin -d '{{"plan": [{{"status": 500}}]}}'        the next call fails
  curl URL/standin -d '{{"rank": 1, "kv_usage": 0.97}}'      what /metrics shows of one rank
  curl URL/standin -d '{{"leave": 5}}'                       gone for 5 seconds, as when started again
  All orders: tests/standins/control.py.
"""


class Process(StandIn):
    """The only stand-in of its process."""

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.standins",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=0, help="0: a free one; with --count, replica i takes PORT + i")
    add("--count", type=int, default=1, help="replicas to start, each a process of its own")
    add("--slots", type=int, default=8, help="calls that a rank works on at once; more wait (default: 8)")
    add("--seconds", default="0.25", help="service time of a call, see below (default: 0.25)")
    add("--knee", type=int, help="calls at once up to which a rank gets faster; beyond, each takes longer")
    add("--ranks", type=int, default=1, help="data-parallel ranks, each with its slots (default: 1)")
    add("--ignore-rank", action="store_true", help="ignore X-data-parallel-rank")
    add("--hide-slots", action="store_true", help="don't state the slots in /metrics, as vLLM doesn't")
    add("--queue-limit", type=int, help="calls that may be here at once; more get 503")
    add("--model", action="append", help="model that it serves; again for further names (default: standin)")
    add("--text", help="text of every answer (default: names the call and its image)")
    add("--fault", action="append", default=[], metavar="NAME[:SHARE]", help="for this share of the calls, by chance")
    add("--seed", type=int, help="of all chance")
    return parser


def _share(fault: str) -> tuple[float, Reply]:
    name, _, share = fault.partition(":")
    return float(share or 1.0), reply_named(name)


def _standin(options: argparse.Namespace) -> StandIn:
    """Raises `ValueError`."""
    models = options.model or ["standin"]
    standin = Process(
        slots=options.slots,
        ranks=options.ranks,
        seconds=parse_service_time(options.seconds, random.Random(options.seed)),
        model=models[0],
        aliases=models[1:],
        text=name_call if options.text is None else lambda _: options.text,
        host=options.host,
        port=options.port,
        states_slots=not options.hide_slots,
        honours_rank=not options.ignore_rank,
        queue_limit=options.queue_limit,
        knee=options.knee,
        keep_calls=False,
        seed=options.seed,
    )
    standin.mix(*map(_share, options.fault))
    return standin


async def _serve(standin: StandIn, ended: asyncio.Event) -> None:
    async with standin:
        sys.stdout.write(f"{READY}{standin.url}\n")  # at one go: others may write to the same pipe
        sys.stdout.flush()
        await ended.wait()


async def _serve_several(options: argparse.Namespace, ended: asyncio.Event) -> None:
    """Each with the same arguments but for its port; they end with this process."""
    for number in range(options.count):
        port = options.port + number if options.port else 0
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.standins", *sys.argv[1:], "--count", "1", "--port", str(port)),
            env=child_environment(),
        )
    await ended.wait()


async def main() -> None:
    die_with_parent()
    parser = _parser()
    options = parser.parse_args()
    ended = asyncio.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_number, ended.set)
    try:
        standin = _standin(options)
    except ValueError as error:
        parser.error(str(error))
    await (_serve(standin, ended) if options.count == 1 else _serve_several(options, ended))


if __name__ == "__main__":
    asyncio.run(main())
