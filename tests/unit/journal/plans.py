"""How SQLite would read what it is asked."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any


def plan_steps(path: Path, statements: Sequence[tuple[str, Any]]) -> list[str]:
    """Steps of the plans of all SELECTs among `statements`."""
    with closing(sqlite3.connect(path)) as connection:
        return [
            step
            for sql, parameters in statements
            if sql.startswith("SELECT")
            for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        ]
