"""How far a document is, and when it will be done."""

from dataclasses import dataclass
from datetime import datetime

from app.documents.records import Document


@dataclass(frozen=True, slots=True)
class Progress:
    """None where nothing can be said yet."""

    queue_position: int | None
    pages_per_second: float | None
    eta_seconds: float | None


def progress_of(document: Document, now: datetime) -> Progress:
    """Measured on the document itself: pages ended since its first claim, and the rest at the same rate."""
    if document.started_at is None:
        return Progress(None, None, None)
    seconds = ((document.ended_at or now) - document.started_at).total_seconds()
    done = document.counts.succeeded + document.counts.failed
    if done == 0 or seconds <= 0:
        return Progress(None, None, None)
    rate = done / seconds
    left = 0 if document.state.ended else document.counts.queued + document.counts.running
    return Progress(None, round(rate, 3), round(left / rate, 1))
