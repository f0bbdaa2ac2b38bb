"""`pagefleet replicas up`: replicas without a gateway, until a signal."""

import asyncio
import signal

from app.errors import StartError
from app.replicas.cpu_fleet import cpu_commands, default_count
from app.replicas.supervisor import Supervisor
from app.telemetry.logs import get_logger

logger = get_logger("replicas")


async def replicas_up(*, engine: str, count: int | None, host: str, port: int) -> int:
    """Run `count` replicas until SIGTERM or SIGINT; each one's URL is printed as it comes up. Returns the exit status.

    `count` None: by CPUs and free memory. `port` 0: free ports; else replica i listens on `port` + i.
    Raises `StartError`.
    """
    if engine != "cpu":
        raise StartError(f"the engine {engine!r} is not available yet; known: cpu")
    if count is not None and count < 1:
        raise StartError("at least one replica is needed")
    commands = cpu_commands(default_count() if count is None else count, host=host, port=port)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    supervisor = Supervisor(commands, on_up=_print_up, on_down=_log_down)
    await supervisor.start()
    try:
        await stopping.wait()
    finally:
        await supervisor.stop()
    return 0


def _print_up(url: str) -> None:
    print(f"replica up at {url}", flush=True)


def _log_down(url: str) -> None:
    logger.warning("replica down", url=url)
