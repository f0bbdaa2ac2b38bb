"""The JSON shapes of documents, pages, events and lanes, as clients see them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from typing_extensions import TypedDict  # pydantic takes that of `typing` from Python 3.12 on

from app.documents.progress import progress_of
from app.documents.records import Capacity, Document, Event, Outlook, Page, Warn
from app.errors import Problem
from app.fleet import LaneView


class WarningShape(TypedDict):
    code: str
    detail: str


class CountsShape(TypedDict):
    total: int
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class ProgressShape(TypedDict):
    queue_position: int | None
    pages_per_second: float | None
    eta_seconds: float | None


class LinksShape(TypedDict):
    self: str
    events: str
    result: str
    pages: str
    cancel: str


class DocumentShape(TypedDict):
    id: str
    state: str
    filename: str
    bytes: int
    sha256: str
    profile: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None
    pages: CountsShape
    progress: ProgressShape
    warnings: list[WarningShape]
    error: Problem | None
    metadata: dict[str, Any]
    links: LinksShape


class SecondsShape(TypedDict):
    wait: float
    render: float
    service: float


class TokensShape(TypedDict):
    prompt: int | None
    completion: int | None


class PageShape(TypedDict):
    page: int
    state: str
    source: str | None
    text: str
    profile: str | None
    model: str | None
    lane: str | None
    attempts: int
    seconds: SecondsShape
    size: list[float] | None
    tokens: TokensShape
    confidence: float | None
    warnings: list[WarningShape]
    error: Problem | None


class LaneShape(TypedDict):
    id: str
    endpoint: str
    rank: int | None
    engines: int
    model: str | None
    state: str
    reason: str
    since: str
    window: int
    share: int
    in_flight: int
    attempts: int
    failures: int
    charged_failures: int
    foreign_requests: float
    seconds_per_page: float | None


class CapacityPagesShape(TypedDict):
    queued: int
    running: int


class CapacityLanesShape(TypedDict):
    up: int
    total: int


class CapacitySlotsShape(TypedDict):
    total: int
    free: int


class CapacityShape(TypedDict):
    pages: CapacityPagesShape
    pages_per_second: float | None
    backlog_seconds: float | None
    lanes: CapacityLanesShape
    slots: CapacitySlotsShape
    gateways: int
    max_queued_pages: int


def document_link(document_id: str, root_path: str) -> str:
    """Path of a document, without host."""
    return f"{root_path}/documents/{document_id}"


def document_shape(document: Document, root_path: str, outlook: Outlook | None = None) -> DocumentShape:
    """Without an outlook nothing is said of the time before the first page has ended."""
    counts, progress = document.counts, progress_of(document, datetime.now(UTC), outlook)
    link = document_link(document.id, root_path)
    return {
        "id": document.id,
        "state": document.state.value,
        "filename": document.filename,
        "bytes": document.bytes,
        "sha256": document.sha256,
        "profile": document.profile,
        "created_at": _time(document.created_at),
        "started_at": _time_or_none(document.started_at),
        "ended_at": _time_or_none(document.ended_at),
        "expires_at": _time_or_none(document.expires_at),
        "pages": {
            "total": counts.total,
            "queued": counts.queued,
            "running": counts.running,
            "succeeded": counts.succeeded,
            "failed": counts.failed,
            "cancelled": counts.cancelled,
        },
        "progress": {
            "queue_position": progress.queue_position,
            "pages_per_second": progress.pages_per_second,
            "eta_seconds": progress.eta_seconds,
        },
        "warnings": _warnings(document.warnings),
        "error": document.error,
        "metadata": document.metadata,
        "links": {
            "self": link,
            "events": f"{link}/events",
            "result": f"{link}/result",
            "pages": f"{link}/pages",
            "cancel": f"{link}/cancel",
        },
    }


def page_shape(page: Page) -> PageShape:
    outcome = page.outcome
    seconds = outcome.seconds
    return {
        "page": page.number,
        "state": outcome.state.value,
        "source": outcome.source.value if outcome.source else None,
        "text": outcome.text,
        "profile": outcome.profile,
        "model": outcome.model,
        "lane": outcome.lane,
        "attempts": outcome.attempts,
        "seconds": {
            "wait": round(seconds.wait, 3),
            "render": round(seconds.render, 3),
            "service": round(seconds.service, 3),
        },
        "size": [round(side, 2) for side in outcome.size] if outcome.size else None,
        "tokens": {"prompt": outcome.prompt_tokens, "completion": outcome.completion_tokens},
        "confidence": outcome.confidence,
        "warnings": _warnings(outcome.warnings),
        "error": outcome.error,
    }


def event_shape(event: Event, document: Document, root_path: str) -> dict[str, Any]:
    """An event as the `data:` of an SSE event or a line of NDJSON."""
    shape: dict[str, Any] = {"seq": event.seq, "event": event.kind.value, "document_id": document.id}
    if event.page is not None:
        shape["page"] = page_shape(event.page)
    else:
        shape["document"] = document_shape(document, root_path)
    return shape


def lane_shape(lane: LaneView) -> LaneShape:
    return {
        "id": lane.id,
        "endpoint": lane.endpoint,
        "rank": lane.rank,
        "engines": lane.engines,
        "model": lane.model,
        "state": lane.state,
        "reason": lane.reason,
        "since": _time(lane.since),
        "window": lane.window,
        "share": lane.share,
        "in_flight": lane.inflight,
        "attempts": lane.attempts,
        "failures": lane.failures,
        "charged_failures": lane.charged,
        "foreign_requests": lane.foreign,
        "seconds_per_page": lane.seconds_per_page,
    }


def capacity_shape(capacity: Capacity, lanes: Sequence[LaneView], max_queued_pages: int) -> CapacityShape:
    waiting, rate = capacity.queued + capacity.running, capacity.pages_per_second
    up = [lane for lane in lanes if lane.state.takes_pages]
    return {
        "pages": {"queued": capacity.queued, "running": capacity.running},
        "pages_per_second": round(rate, 3) if rate else None,
        "backlog_seconds": _backlog_seconds(waiting, rate),
        "lanes": {"up": len(up), "total": len(lanes)},
        "slots": {
            "total": sum(lane.window for lane in up),
            "free": sum(max(0, lane.window - lane.inflight) for lane in up),
        },
        "gateways": capacity.gateways,
        "max_queued_pages": max_queued_pages,
    }


def _backlog_seconds(pages: int, pages_per_second: float) -> float | None:
    if pages == 0:
        return 0.0
    return round(pages / pages_per_second, 1) if pages_per_second else None


def _warnings(warnings: tuple[Warn, ...]) -> list[WarningShape]:
    return [{"code": warning.code, "detail": warning.detail} for warning in warnings]


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else _time(moment)
