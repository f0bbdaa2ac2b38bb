"""Wires the rooms together and owns their life: start, drain, stop."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack

import uvicorn

from app.api import BoundedHttpProtocol, Context, Keys, create_app, is_loopback
from app.errors import StartError
from app.fleet import Fleet
from app.intake import Intake
from app.journal import Journal
from app.journal.blob_url import open_blobs
from app.profiles import Profiles
from app.rendering import Rendering
from app.replicas.cpu_fleet import cpu_commands, default_count
from app.replicas.supervisor import Supervisor
from app.settings import Settings
from app.telemetry.logs import get_logger
from app.worker import Sweeper, Worker

CUT_STREAM_MESSAGE = "ASGI callable returned without completing response."
"""What uvicorn logs as an error when a stream is cut on purpose."""
HTTP_CLOSE_SECONDS = 5
"""What requests that are under way after the drain get to end."""
STOP_SECONDS = 20
"""What everything beside the grace time may take after a signal to stop."""

_logger = get_logger("main")


class Gateway:
    """One gateway: the rooms in the order of their start; they stop the other way round."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._worker: Worker | None = None
        self.context: Context | None = None

    async def start(self) -> Context:
        """Start every room. Raises `StartError`; what was started by then is stopped."""
        async with AsyncExitStack() as stack:
            context = await self._start(stack)
            self._stack = stack.pop_all()
        self.context = context
        return context

    async def drain(self) -> None:
        """Cut the streams, take nothing new, let pages in flight end within the grace time, and answer who waited."""
        if self.context is not None:
            self.context.draining.set()
        if self._worker is not None:
            await self._worker.drain(self._settings.grace_seconds)
        if self.context is not None:
            self.context.close()

    async def stop(self) -> None:
        await self._stack.aclose()

    async def _start(self, stack: AsyncExitStack) -> Context:
        settings = self._settings
        keys = None if settings.api_keys_file is None else Keys(settings.api_keys_file)
        journal = await Journal.open(settings)
        stack.push_async_callback(journal.close)
        blobs = await open_blobs(settings)
        stack.push_async_callback(blobs.close)
        rendering = Rendering(settings)
        stack.push_async_callback(rendering.close)
        fleet = Fleet(settings)
        await self._start_replicas(fleet, stack)  # before the fleet, so that they end after it
        await fleet.start()
        stack.push_async_callback(fleet.stop)
        profiles = Profiles(settings)
        if settings.profile != "auto":
            profiles[settings.profile]  # raises ProfileUnknown now rather than at the first upload
        fleet.share_with(journal.peers, lambda model: profiles.for_models([model]))
        journal.peers.on_beat(fleet.reshare)
        intake = Intake(
            settings, journal, blobs, rendering, profiles.names, lambda: profiles.for_models(fleet.models())
        )
        await intake.sweep_spool()
        self._worker = Worker(settings, journal, blobs, rendering, fleet, profiles)
        self._worker.start()
        stack.push_async_callback(self._worker.drain, 0)  # where a start fails; else nothing is left to hand back
        sweeper = Sweeper(journal, blobs, settings)
        await sweeper.start()
        stack.push_async_callback(sweeper.stop)
        return Context(settings, journal, blobs, intake, rendering, fleet, keys)

    async def _start_replicas(self, fleet: Fleet, stack: AsyncExitStack) -> None:
        """Use the endpoints given, or start CPU replicas where there is none."""
        if self._settings.endpoints:
            return
        count = default_count() if self._settings.cpu_replicas is None else self._settings.cpu_replicas

        def up(url: str) -> None:
            fleet.add_endpoint(url, own=True)
            fleet.note_up(url)

        supervisor = Supervisor(cpu_commands(count), on_up=up, on_down=fleet.note_down)
        await supervisor.start()
        stack.push_async_callback(supervisor.stop)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the drain runs before its own wait for open requests."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _end_within(seconds: float) -> None:
    """End the process then, whatever hangs: a thread that waits for a database which accepts everything and answers
    nothing would hold it for ever. Nothing is lost: what it had claimed, others or its successor take over.
    """

    def end() -> None:
        _logger.error("stopped without waiting any longer")
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


async def serve(settings: Settings) -> int:
    """Run a gateway until SIGTERM or SIGINT; returns the exit status."""
    if settings.api_keys_file is None and not settings.allow_anonymous and not is_loopback(settings.host):
        raise StartError(
            f"refusing to listen on {settings.host} without API keys; set PAGEFLEET_API_KEYS_FILE, "
            "or PAGEFLEET_ALLOW_ANONYMOUS=true if everybody who can reach it may use it"
        )
    listener = _listen(settings.host, settings.port)
    stopping = asyncio.Event()

    def stop() -> None:
        if not stopping.is_set():
            stopping.set()
            _end_within(settings.grace_seconds + STOP_SECONDS)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    gateway = Gateway(settings)
    try:
        context = await gateway.start()
        await _serve_http(gateway, context, listener, stopping)
    finally:
        await gateway.stop()
        listener.close()
    return 0


async def _serve_http(gateway: Gateway, context: Context, listener: socket.socket, stopping: asyncio.Event) -> None:
    config = uvicorn.Config(
        create_app(context),
        http=BoundedHttpProtocol,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=HTTP_CLOSE_SECONDS,
    )
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.getMessage() != CUT_STREAM_MESSAGE)
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    host, port = listener.getsockname()[:2]
    print(f"pagefleet listening on http://{f'[{host}]' if ':' in host else host}:{port}", flush=True)
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait((serving, stop), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not serving.done():
        _logger.info("draining")
        await gateway.drain()
        server.should_exit = True
    await serving


def _listen(host: str, port: int) -> socket.socket:
    """Bind before anything is started, so that a taken port is told at once; raises `StartError`."""
    with contextlib.ExitStack() as on_failure:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listener = on_failure.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(2048)
        except OSError as error:
            raise StartError(f"can't listen on {host}:{port}: {error.strerror or error}") from None
        on_failure.pop_all()
    listener.setblocking(False)
    return listener
