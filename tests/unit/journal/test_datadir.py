"""The lock on the data directory."""

import stat
from pathlib import Path

import pytest

from app.errors import StartError
from app.journal.datadir import DataDir


def test_a_missing_directory_is_made_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    DataDir.lock(path).unlock()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_the_lock_is_exclusive_until_it_is_let_go(tmp_path: Path) -> None:
    first = DataDir.lock(tmp_path)
    with pytest.raises(StartError, match=str(tmp_path)):
        DataDir.lock(tmp_path)
    first.unlock()
    DataDir.lock(tmp_path).unlock()


def test_a_path_that_is_no_directory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(StartError, match=f"{path} can't be used"):
        DataDir.lock(path)
