"""`python -m app.replicas.cpu`: one embedded OCR server."""

import argparse
import signal
import socket
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import uvicorn

from app.errors import StartError
from app.lifeline import die_with_parent
from app.replicas.cpu.paddle import PaddleEngine
from app.replicas.cpu.server import create_app
from app.telemetry.logs import configure_logging

GRACE_SECONDS = 10
"""Time that pages in line get to be read at SIGTERM."""
START_ERROR_STATUS = 2


class _AnnouncingServer(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = (sockets or [])[0].getsockname()[:2]
        url_host = f"[{host}]" if ":" in host else host
        print(f"pagefleet cpu replica listening on http://{url_host}:{port}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT: 0; 2 when the server can't start, with one line on standard error."""
    die_with_parent()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit)
    options = _parser().parse_args(arguments)
    configure_logging(options.log_level)
    try:
        listener = _listen(options.host, options.port)
        app = create_app(PaddleEngine())
    except StartError as error:
        print(f"pagefleet cpu replica: {error.detail}", file=sys.stderr)
        return START_ERROR_STATUS
    config = uvicorn.Config(
        app, log_config=None, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_SECONDS
    )
    _AnnouncingServer(config).run(sockets=[listener])
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m app.replicas.cpu", description="One embedded OCR server.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="TCP port to listen on; 0 takes a free one")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return parser


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise StartError(f"can't listen on {host} port {port}: {error}") from error


def _exit(_signal: int, _frame: FrameType | None) -> NoReturn:
    """uvicorn raises the signal that ended it once more when it is done: the default would end the process by it."""
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
