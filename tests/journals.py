"""Values for tests of and with the journal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uuid_utils

from app.documents.records import Claim, Event, NewDocument, PageOutcome, PageSeconds, Warn
from app.documents.states import PageState, Source
from app.errors import ReplicaError
from app.journal import Journal
from app.journal.database import Driver
from app.journal.postgres import PostgresDriver
from app.journal.sqlite import SqliteDriver
from app.settings import Settings

PROFILES = ("cpu",)


def settings_for(data_dir: Path, **values: Any) -> Settings:
    return Settings(data_dir=data_dir, **values)


def new_document(pages: int | Sequence[int] = 1, **values: Any) -> NewDocument:
    """A checked upload with pages 1 to `pages`, or those named."""
    document_id = str(uuid_utils.uuid7())
    tenant = values.setdefault("tenant", "default")
    return NewDocument(
        id=document_id,
        filename="letter.pdf",
        media_type="application/pdf",
        bytes=1234,
        sha256="0" * 64,
        blob_key=f"v1/{tenant}/{document_id}/source",
        pages=tuple(range(1, pages + 1)) if isinstance(pages, int) else tuple(pages),
        **values,
    )


def succeeded(text: str = "text") -> PageOutcome:
    """An outcome with every field set."""
    return PageOutcome(
        state=PageState.SUCCEEDED,
        source=Source.MODEL,
        text=text,
        profile="cpu",
        model="tiny",
        lane="0123456789ab-0",
        attempts=2,
        seconds=PageSeconds(wait=0.25, render=0.5, service=1.5),
        size=(595.5, 842.25),
        prompt_tokens=11,
        completion_tokens=22,
        warnings=(Warn("rotated", "turned by 90 degrees"),),
        confidence=0.875,
    )


def failed(detail: str = "no replica could read it") -> PageOutcome:
    return PageOutcome(state=PageState.FAILED, attempts=3, error=ReplicaError(detail).problem())


async def read_all(journal: Journal, outcome: PageOutcome | None = None) -> list[Claim]:
    """Claim and commit whatever is claimable; the claims, in their order."""
    done: list[Claim] = []
    while claims := await journal.claim(100, PROFILES):
        for claim in claims:
            assert await journal.commit(claim, outcome or succeeded())
        done += claims
    return done


def driver_of(settings: Settings) -> Driver:
    """The database itself, without a journal."""
    url = settings.database_url
    return SqliteDriver(settings.database_path) if url is None else PostgresDriver(url)


def run_sql(settings: Settings, statement: str) -> None:
    """Run a statement behind the journal's back."""
    driver = driver_of(settings)
    with driver.writer.begin() as connection:
        connection.exec_driver_sql(statement)
    driver.writer.dispose()


def told(events: Sequence[Event]) -> list[tuple[int, str, int | None]]:
    """Events as (seq, kind, page number)."""
    return [(event.seq, event.kind.value, event.page.number if event.page else None) for event in events]
