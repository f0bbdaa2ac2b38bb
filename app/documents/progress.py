"""How far a document is, and when it will be done."""

from dataclasses import dataclass
from datetime import datetime

from app.documents.records import Document, Outlook


@dataclass(frozen=True, slots=True)
class Progress:
    """None where nothing can be said yet."""

    queue_position: int | None = None
    """Among the documents of its tenant, while none of its pages has been claimed; 1 is next."""
    pages_per_second: float | None = None
    """Measured on the document itself, from its first claim."""
    eta_seconds: float | None = None


def progress_of(document: Document, now: datetime, outlook: Outlook | None = None) -> Progress:
    """By the document's own pace once pages of it have ended; before that by what lies before it, where it is given."""
    done = document.counts.succeeded + document.counts.failed
    seconds = _seconds_of_work(document, now)
    if done and seconds > 0:
        rate = done / seconds
        left = 0 if document.state.ended else document.counts.queued + document.counts.running
        return Progress(None, round(rate, 3), round(left / rate, 1))
    if outlook is None or document.state.ended:
        return Progress()
    rate = outlook.pages_per_second
    return Progress(
        queue_position=outlook.position or None if document.started_at is None else None,
        eta_seconds=round(outlook.pages_ahead / rate, 1) if rate > 0 else None,
    )


def _seconds_of_work(document: Document, now: datetime) -> float:
    return ((document.ended_at or now) - document.started_at).total_seconds() if document.started_at else 0.0
