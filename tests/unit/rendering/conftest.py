"""A running `Rendering` that the tests share, and what they ask of processes."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.rendering import Rendering
from app.settings import Settings


@pytest.fixture(scope="package")
async def rendering() -> AsyncIterator[Rendering]:
    shared = Rendering(Settings(render_workers=1))
    yield shared
    await shared.close()


def open_descriptors() -> int:
    """How many this process has."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


def is_running(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
