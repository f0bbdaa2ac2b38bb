from datetime import UTC, datetime, timedelta, timezone

from app.api.shapes import document_shape, event_shape, page_shape
from app.documents.records import Counts, Document, Event, Page, PageOutcome, PageSeconds, Warn
from app.documents.states import DocumentState, EventKind, PageState
from tests.journals import failed, succeeded

NOON = datetime(2026, 5, 4, 12, 0, 0, 123_456, tzinfo=UTC)

DOCUMENT = Document(
    id="0198",
    tenant="default",
    state=DocumentState.PARTIAL,
    filename="Prüfung.pdf",
    media_type="application/pdf",
    bytes=1234,
    sha256="0" * 64,
    blob_key="v1/default/0198/source",
    profile="cpu",
    priority=3,
    counts=Counts(total=10, queued=1, running=2, succeeded=3, failed=2, cancelled=2),
    seq=7,
    retries=0,
    created_at=NOON.astimezone(timezone(timedelta(hours=2))),
    started_at=NOON,
    ended_at=NOON + timedelta(seconds=10),
    expires_at=None,
    metadata={"a": [1]},
    warnings=(Warn("file_repaired", "its index was rebuilt"),),
    error=None,
)


def test_a_document_shows_what_clients_rely_on_and_nothing_else() -> None:
    shape = document_shape(DOCUMENT, "/ocr")
    assert list(shape) == [
        *("id", "state", "filename", "bytes", "sha256", "profile", "created_at", "started_at", "ended_at"),
        *("expires_at", "pages", "progress", "warnings", "error", "metadata", "links"),
    ]
    assert shape["pages"] == {"total": 10, "queued": 1, "running": 2, "succeeded": 3, "failed": 2, "cancelled": 2}
    assert shape["warnings"] == [{"code": "file_repaired", "detail": "its index was rebuilt"}]
    assert shape["progress"] == {"queue_position": None, "pages_per_second": 0.5, "eta_seconds": 0.0}
    assert shape["metadata"] == {"a": [1]}


def test_times_are_utc_to_the_millisecond() -> None:
    shape = document_shape(DOCUMENT, "")
    assert shape["created_at"] == shape["started_at"] == "2026-05-04T12:00:00.123Z"
    assert shape["expires_at"] is None


def test_links_are_paths_below_the_root_path() -> None:
    links = document_shape(DOCUMENT, "/ocr")["links"]
    assert links["self"] == "/ocr/documents/0198"
    assert {name: str(link).removeprefix(links["self"]) for name, link in links.items()} == {
        "self": "",
        "events": "/events",
        "result": "/result",
        "pages": "/pages",
        "cancel": "/cancel",
    }


def test_a_page_that_was_read_shows_how() -> None:
    outcome = succeeded("text")
    shape = page_shape(Page("0198", 12, outcome, NOON, seq=5))
    assert (shape["page"], shape["state"], shape["source"], shape["text"]) == (12, "succeeded", "model", "text")
    assert (shape["profile"], shape["model"], shape["lane"]) == ("cpu", "tiny", "0123456789ab-0")
    assert shape["attempts"] == 2
    assert shape["size"] == [595.5, 842.25]
    assert shape["tokens"] == {"prompt": 11, "completion": 22}
    assert shape["warnings"] == [{"code": "rotated", "detail": "turned by 90 degrees"}]
    assert shape["error"] is None


def test_figures_are_rounded() -> None:
    outcome = PageOutcome(PageState.SUCCEEDED, seconds=PageSeconds(0.12345, 0, 1 / 3), size=(595.2756, 841.8898))
    shape = page_shape(Page("0198", 1, outcome, NOON))
    assert shape["seconds"] == {"wait": 0.123, "render": 0, "service": 0.333}
    assert shape["size"] == [595.28, 841.89]


def test_a_page_that_failed_shows_its_problem() -> None:
    shape = page_shape(Page("0198", 1, failed("no luck"), NOON))
    assert (shape["state"], shape["source"], shape["text"], shape["size"]) == ("failed", None, "", None)
    assert shape["error"] is not None
    assert (shape["error"]["code"], shape["error"]["detail"]) == ("replica_error", "no luck")


def test_an_event_carries_its_page_or_the_document() -> None:
    page = Page("0198", 4, succeeded(), NOON, seq=5)
    told = event_shape(Event(5, EventKind.PAGE, page), DOCUMENT, "/ocr")
    ended = event_shape(Event(7, EventKind.END), DOCUMENT, "/ocr")
    assert told == {"seq": 5, "event": "page", "document_id": "0198", "page": page_shape(page)}
    assert ended == {"seq": 7, "event": "end", "document_id": "0198", "document": document_shape(DOCUMENT, "/ocr")}
