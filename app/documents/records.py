"""Documents, pages, claims and events as plain values: what the rooms hand each other."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from app.documents.states import DocumentState, EventKind, OnPageError, PageState, Source
from app.errors import Problem


@dataclass(frozen=True, slots=True)
class Warn:
    """Something a reader of the result should know; never an error."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Pages of a document by state; they add up to `total`, the pages asked for."""

    total: int
    queued: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.cancelled

    def stopped(self) -> "Counts":
        """With all pages cancelled that have not ended."""
        return replace(self, queued=0, running=0, cancelled=self.cancelled + self.queued + self.running)

    def final_state(self) -> DocumentState:
        """End state of a document whose pages have all ended and that nothing stopped before."""
        if self.succeeded == 0:
            return DocumentState.FAILED
        return DocumentState.PARTIAL if self.succeeded < self.total else DocumentState.SUCCEEDED


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A checked upload whose bytes lie in the blob store, ready to be written to the journal."""

    id: str
    tenant: str
    filename: str
    media_type: str
    bytes: int
    sha256: str
    blob_key: str
    pages: tuple[int, ...]
    """Numbers of the pages asked for, ascending, from 1."""
    profile: str | None = None
    """None: resolved at the first claim."""
    priority: int = 3
    password: str | None = field(default=None, repr=False)
    metadata: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[Warn, ...] = ()
    ttl_seconds: int = 86_400
    on_page_error: OnPageError = OnPageError.KEEP


@dataclass(frozen=True, slots=True)
class Document:
    """A document as the journal holds it. Times are UTC."""

    id: str
    tenant: str
    state: DocumentState
    filename: str
    media_type: str
    bytes: int
    sha256: str
    blob_key: str
    profile: str | None
    priority: int
    counts: Counts
    seq: int
    """Number of the newest event."""
    retries: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    expires_at: datetime | None
    metadata: dict[str, Any]
    warnings: tuple[Warn, ...]
    error: Problem | None
    on_page_error: OnPageError = OnPageError.KEEP
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PageSeconds:
    """Where a page's time went, in seconds: waiting to be claimed and dispatched, being drawn, being read."""

    wait: float = 0.0
    render: float = 0.0
    service: float = 0.0


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """How a claimed page ended; what a commit writes."""

    state: PageState
    """`SUCCEEDED` or `FAILED`."""
    source: Source | None = None
    text: str = ""
    profile: str | None = None
    model: str | None = None
    lane: str | None = None
    attempts: int = 0
    """Attempts charged to the page, over all its claims."""
    seconds: PageSeconds = PageSeconds()
    size: tuple[float, float] | None = None
    """Width and height as shown, in points."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    warnings: tuple[Warn, ...] = ()
    error: Problem | None = None
    confidence: float | None = None
    """How sure the replica is of the text, 0 to 1; None where it does not say."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as the journal holds it; `outcome.state` may also be `queued`, `running` or `cancelled`."""

    document_id: str
    number: int
    outcome: PageOutcome
    ended_at: datetime | None
    seq: int | None = None
    """Number of the event that tells of its end."""

    @property
    def state(self) -> PageState:
        return self.outcome.state


@dataclass(frozen=True, slots=True)
class Claim:
    """A gateway's right to work on one page; `number` is the fence."""

    document_id: str
    tenant: str
    page: int
    number: int
    profile: str
    priority: int
    blob_key: str
    password: str | None = field(repr=False)
    attempts: int
    """Attempts charged to the page so far."""
    lane_deaths: int
    queued_at: datetime
    """When the page last became claimable, UTC."""
    media_type: str = "application/pdf"
    on_page_error: OnPageError = OnPageError.KEEP

    @property
    def key(self) -> tuple[str, int]:
        return self.document_id, self.page

    @property
    def fence(self) -> tuple[str, int, int]:
        """What a page must still have for the claim to hold."""
        return self.document_id, self.page, self.number


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a document; `page` is set for kind `page`."""

    seq: int
    kind: EventKind
    page: Page | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What lies before a document of which no page has ended."""

    position: int
    """Documents of its tenant that are served before it, itself included: 1 is next. 0: it has no page in the queue."""
    pages_ahead: int
    """Pages of anybody that end until its last, those that are being read now and its own included; estimated."""
    pages_per_second: float
    """Of all gateways; 0: not known."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """All work, and how fast it is done."""

    queued: int
    """Pages that nobody has claimed."""
    running: int
    """Pages that a gateway has claimed."""
    pages_per_second: float
    """Of all gateways; 0: not known."""
    gateways: int
    """Those that live."""


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """What a profile wants a page image to be."""

    longest_side_pixels: int
    media_type: str = "image/jpeg"
    """`image/jpeg` (quality 90) or `image/png`."""
