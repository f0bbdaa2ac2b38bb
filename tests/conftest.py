"""Fixtures for all tests."""

import signal
from collections.abc import Iterator

import pytest

from tests.processes import CPU_SERVER, READY, next_line, python
from tests.servers import PostgresServer, SeaweedServer

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Shells start jobs in the background so, and what ignores a signal hands that on to the processes it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=("sqlite", "postgresql"), default="sqlite", help="what the contract runs on")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def replica_url() -> Iterator[str]:
    """Base URL of an embedded OCR server in a process of its own, started once."""
    with python(*CPU_SERVER, life_seconds=600) as process:
        yield next_line(process).removeprefix(READY)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def seaweed() -> Iterator[SeaweedServer]:
    with SeaweedServer() as server:
        yield server
