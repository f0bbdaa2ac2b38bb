"""Fixtures for all tests."""

from collections.abc import Iterator

import pytest

from tests.processes import CPU_SERVER, READY, next_line, python


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def replica_url() -> Iterator[str]:
    """Base URL of an embedded OCR server in a process of its own, started once."""
    with python(*CPU_SERVER, life_seconds=600) as process:
        yield next_line(process).removeprefix(READY)
