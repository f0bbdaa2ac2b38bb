"""Rows of the tables as the domain's values, and back."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row

from app.documents.records import Claim, Counts, Document, Event, NewDocument, Page, PageOutcome, PageSeconds, Warn
from app.documents.states import DocumentState, EventKind, OnPageError, PageState, Source
from app.journal.tables import pages

PAGE_COLUMNS = [
    column
    for column in pages.c
    if column.name not in ("queued_at", "not_before", "claim_number", "claim_owner", "lane_deaths")
]


def document_of(row: Row[Any]) -> Document:
    return Document(
        id=row.id,
        tenant=row.tenant,
        state=DocumentState(row.state),
        filename=row.filename,
        media_type=row.media_type,
        bytes=row.bytes,
        sha256=row.sha256,
        blob_key=row.blob_key,
        profile=row.profile,
        priority=row.priority,
        counts=counts_of(row),
        seq=row.seq,
        retries=row.retries,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        expires_at=row.expires_at,
        metadata=row.metadata,
        warnings=_warnings(row.warnings),
        error=row.error,
        on_page_error=OnPageError(row.on_page_error),
        password=row.password,
    )


def counts_of(row: Row[Any]) -> Counts:
    return Counts(
        total=row.pages_total,
        queued=row.pages_queued,
        running=row.pages_running,
        succeeded=row.pages_succeeded,
        failed=row.pages_failed,
        cancelled=row.pages_cancelled,
    )


def count_values(counts: Counts) -> dict[str, int]:
    """Columns of a document that count its pages, all but their total."""
    return {
        "pages_queued": counts.queued,
        "pages_running": counts.running,
        "pages_succeeded": counts.succeeded,
        "pages_failed": counts.failed,
        "pages_cancelled": counts.cancelled,
    }


def page_of(row: Row[Any]) -> Page:
    return Page(
        document_id=row.document_id,
        number=row.number,
        outcome=PageOutcome(
            state=PageState(row.state),
            source=Source(row.source) if row.source else None,
            text=row.text,
            profile=row.profile,
            model=row.model,
            lane=row.lane,
            attempts=row.attempts,
            seconds=PageSeconds(row.wait_seconds, row.render_seconds, row.service_seconds),
            size=None if row.width_points is None else (row.width_points, row.height_points),
            prompt_tokens=row.prompt_tokens,
            completion_tokens=row.completion_tokens,
            warnings=_warnings(row.warnings),
            error=row.error,
            confidence=row.confidence,
        ),
        ended_at=row.ended_at,
        seq=row.seq,
    )


def event_of(row: Row[Any]) -> Event:
    """Of an event's columns and those of its page, which are null where it has none."""
    return Event(seq=row.event_seq, kind=EventKind(row.kind), page=None if row.number is None else page_of(row))


def claim_of(document: Row[Any], page: Row[Any], profile: str) -> Claim:
    """Of rows as they were before the claim, which raises the page's number by one."""
    return Claim(
        document_id=document.id,
        tenant=document.tenant,
        page=page.number,
        number=page.claim_number + 1,
        profile=document.profile or profile,
        priority=document.priority,
        blob_key=document.blob_key,
        password=document.password,
        attempts=page.attempts,
        lane_deaths=page.lane_deaths,
        queued_at=page.queued_at,
        media_type=document.media_type,
        on_page_error=OnPageError(document.on_page_error),
    )


def document_values(new: NewDocument, now: datetime) -> dict[str, Any]:
    """Columns of a new document, none of whose pages is in the queue yet."""
    columns = {name: getattr(new, name) for name in NewDocument.__dataclass_fields__ if name != "pages"}
    return {
        **columns,
        "warnings": [asdict(warning) for warning in new.warnings],
        "pages_total": len(new.pages),
        "seq": 1,
        "created_at": now,
    }


def end_values(document: Row[Any], state: DocumentState, now: datetime) -> dict[str, Any]:
    """Columns of a document that ends now; it is kept for its time to live from here."""
    return {"state": state, "ended_at": now, "expires_at": now + timedelta(seconds=document.ttl_seconds)}


def outcome_values(outcome: PageOutcome) -> dict[str, Any]:
    """Columns of a page that hold what came of it."""
    width, height = outcome.size or (None, None)
    return {
        "state": outcome.state,
        "source": outcome.source,
        "text": outcome.text,
        "profile": outcome.profile,
        "model": outcome.model,
        "lane": outcome.lane,
        "attempts": outcome.attempts,
        "wait_seconds": outcome.seconds.wait,
        "render_seconds": outcome.seconds.render,
        "service_seconds": outcome.seconds.service,
        "width_points": width,
        "height_points": height,
        "prompt_tokens": outcome.prompt_tokens,
        "completion_tokens": outcome.completion_tokens,
        "warnings": [asdict(warning) for warning in outcome.warnings] or None,
        "error": outcome.error,
        "confidence": outcome.confidence,
    }


def _warnings(stored: list[dict[str, str]] | None) -> tuple[Warn, ...]:
    return tuple(Warn(**warning) for warning in stored or ())
