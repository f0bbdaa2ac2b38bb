"""A real CPU replica for the tests of this room, started once."""

from collections.abc import Iterator

import pytest

from tests.unit.replicas.processes import CPU_SERVER, READY, next_line, python


@pytest.fixture(scope="session")
def replica_url() -> Iterator[str]:
    """Base URL of an embedded OCR server in a process of its own."""
    with python(*CPU_SERVER, life_seconds=600) as process:
        yield next_line(process).removeprefix(READY)
