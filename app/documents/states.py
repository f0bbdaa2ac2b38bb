"""States of documents and pages."""

from enum import StrEnum


class PageState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self not in (PageState.QUEUED, PageState.RUNNING)


class DocumentState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self not in (DocumentState.QUEUED, DocumentState.RUNNING)


class Source(StrEnum):
    """How a page that succeeded got its text."""

    MODEL = "model"
    TEXT_LAYER = "text_layer"
    BLANK = "blank"


class OnPageError(StrEnum):
    """What follows when a page of a document can't be read."""

    KEEP = "keep"
    """The page is reported, the rest goes on."""
    TEXT_LAYER = "text_layer"
    """The page's own text stands in, marked by its source."""
    FAIL = "fail"
    """The document stops."""


class EventKind(StrEnum):
    DOCUMENT = "document"
    PAGE = "page"
    END = "end"
