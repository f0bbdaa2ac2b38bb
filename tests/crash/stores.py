"""The stores that gateways run on, and a direct look into them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy

_AT_REST: Mapping[str, str] = {
    "claimed pages": "SELECT count(*) FROM pages WHERE claim_owner IS NOT NULL",
    "pages that wait or run": "SELECT count(*) FROM pages WHERE state IN ('queued', 'running')",
    "documents that have not ended": "SELECT count(*) FROM documents WHERE state IN ('queued', 'running')",
    "documents whose counters are wrong": """
        SELECT count(*) FROM documents JOIN (
            SELECT document_id, count(*) AS total,
                sum(CASE WHEN state = 'succeeded' THEN 1 ELSE 0 END) AS succeeded,
                sum(CASE WHEN state = 'failed' THEN 1 ELSE 0 END) AS failed,
                sum(CASE WHEN state = 'cancelled' THEN 1 ELSE 0 END) AS cancelled
            FROM pages GROUP BY document_id
        ) AS counted ON id = document_id
        WHERE pages_total <> total OR pages_succeeded <> succeeded OR pages_failed <> failed
            OR pages_cancelled <> cancelled OR pages_queued <> 0 OR pages_running <> 0""",
    "documents whose last event is not their end": """
        SELECT count(*) FROM documents LEFT JOIN events ON id = document_id AND events.seq = documents.seq
        WHERE kind IS NULL OR kind <> 'end'""",
    "documents without pages": "SELECT count(*) FROM documents WHERE id NOT IN (SELECT document_id FROM pages)",
    "tenants with pages queued": "SELECT count(*) FROM tenants WHERE pages_queued <> 0",
    "reservations of idempotency keys": "SELECT count(*) FROM idempotency_keys WHERE owner IS NOT NULL",
}


@dataclass(frozen=True)
class Store:
    name: str
    gateways: int
    """How many share it."""
    environment: Mapping[str, str]
    """Of each gateway, beside its data directory."""
    database_url: str
    """As SQLAlchemy has it."""
    blobs: Path

    def unrest(self) -> dict[str, int]:
        """What should not be in the database of a service that has nothing to do, and how often it is."""
        counts = {fault: self._rows(statement)[0][0] for fault, statement in _AT_REST.items()}
        return {fault: count for fault, count in counts.items() if count}

    def document_ids(self) -> set[str]:
        return {str(row[0]) for row in self._rows("SELECT id FROM documents")}

    def blob_faults(self) -> set[str]:
        """Keys of blobs without a document, and of documents without a blob."""
        expected = {str(row[0]) for row in self._rows("SELECT blob_key FROM documents")}
        files = (path for path in self.blobs.rglob("*") if path.is_file())
        return expected ^ {path.relative_to(self.blobs).as_posix() for path in files}

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        engine = sqlalchemy.create_engine(self.database_url, poolclass=sqlalchemy.NullPool)
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sqlalchemy.text(statement))]


def sqlite(folder: Path) -> Store:
    """One gateway, with everything in its data directory."""
    data_dir = folder / "gateway-1"
    return Store("sqlite", 1, {}, f"sqlite:///{data_dir}/pagefleet.sqlite3", data_dir / "blobs")


def postgresql(folder: Path, database_url: str) -> Store:
    """Two gateways on one empty database and one folder of blobs."""
    blobs = folder / "blobs"
    environment = {"PAGEFLEET_DATABASE_URL": database_url, "PAGEFLEET_BLOB_URL": str(blobs)}
    return Store("postgresql", 2, environment, database_url.replace("postgresql:", "postgresql+psycopg:", 1), blobs)
