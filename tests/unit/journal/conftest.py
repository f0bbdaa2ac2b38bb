"""What the database is asked, for tests of what a call costs."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event


@pytest.fixture
def statements() -> Iterator[list[tuple[str, Any]]]:
    """SQL and parameters of what is executed."""
    seen: list[tuple[str, Any]] = []

    def record(_: Connection, __: Any, sql: str, parameters: Any, ___: Any, many: bool) -> None:
        seen.append((sql, parameters[0] if many else parameters))

    event.listen(Engine, "before_cursor_execute", record)
    yield seen
    event.remove(Engine, "before_cursor_execute", record)
