"""How a gateway starts and stops; `tests/system` has it whole."""

import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.api import Context
from app.errors import Draining, ProfileUnknown, StartError
from app.intake.spool import SUFFIX
from app.main import Gateway, serve
from app.settings import Settings
from tests.journals import new_document
from tests.processes import DEADLINE_SECONDS, next_line, python

LONG_AGO = 1_000_000_000
"""Seconds since 1970."""


def settings_for(data_dir: Path, **values: Any) -> Settings:
    """Of a gateway whose one endpoint is nobody's."""
    return Settings(data_dir=data_dir, endpoints=("http://127.0.0.1:9",), **values)


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[tuple[Gateway, Context]]:
    gateway = Gateway(settings)
    context = await gateway.start()
    try:
        yield gateway, context
    finally:
        await gateway.stop()


def write_old(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


async def test_a_start_that_fails_takes_back_what_it_had_started(tmp_path: Path) -> None:
    with pytest.raises(ProfileUnknown, match="nope"):
        await Gateway(settings_for(tmp_path, profile="nope")).start()
    async with running(settings_for(tmp_path)) as (_, context):
        await context.journal.ping()


async def test_a_gateway_that_has_stopped_leaves_the_data_to_the_next(tmp_path: Path) -> None:
    for _ in range(2):
        async with running(settings_for(tmp_path)):
            with pytest.raises(StartError):
                await Gateway(settings_for(tmp_path)).start()


async def test_a_start_erases_what_a_cut_upload_left_and_nothing_else(tmp_path: Path) -> None:
    settings, document = settings_for(tmp_path), new_document()
    async with running(settings) as (_, context):
        await context.journal.add_document(document)
    kept = write_old(settings.blob_dir / document.blob_key)
    orphan = write_old(settings.blob_dir / new_document().blob_key)
    received = write_old(settings.spool_dir / f"received{SUFFIX}")
    async with running(settings):
        assert [kept.exists(), orphan.exists(), received.exists()] == [True, False, False]


async def test_a_drain_refuses_what_is_new(tmp_path: Path) -> None:
    async with running(settings_for(tmp_path)) as (gateway, context):
        context.accepting()
        await gateway.drain()
        with pytest.raises(Draining):
            context.accepting()


async def test_a_gateway_that_has_not_started_can_be_drained_and_stopped(tmp_path: Path) -> None:
    gateway = Gateway(settings_for(tmp_path))
    await gateway.drain()
    await gateway.stop()


async def test_a_port_that_is_taken_is_told_before_anything_is_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"127.0.0.1:{port}: Address already in use"):
            await serve(settings_for(tmp_path / "data", port=port))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"host": "0.0.0.0"}, "PAGEFLEET_ALLOW_ANONYMOUS"),
        ({"host": "no-such-host.invalid", "allow_anonymous": True}, "can't listen on no-such-host.invalid"),
    ],
)
async def test_an_address_that_can_not_be_listened_on_is_told(
    tmp_path: Path, values: dict[str, Any], match: str
) -> None:
    with pytest.raises(StartError, match=match):
        await serve(settings_for(tmp_path / "data", **values))
    assert not (tmp_path / "data").exists()


HANGING = """
import asyncio, sys
from pathlib import Path
from app import main
from app.settings import Settings

async def hang(self):
    await asyncio.to_thread(asyncio.run, asyncio.sleep(3600))

main.STOP_SECONDS = 0.1
main.Gateway.stop = hang
settings = Settings(port=0, data_dir=Path(sys.argv[1]), endpoints=("http://127.0.0.1:9",), grace_seconds=0)
asyncio.run(main.serve(settings))
"""


def test_a_gateway_that_hangs_while_it_stops_ends_all_the_same(tmp_path: Path) -> None:
    with python("-c", HANGING, str(tmp_path)) as process:
        assert next_line(process).startswith("pagefleet listening on ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0
