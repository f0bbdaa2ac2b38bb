from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.documents.progress import progress_of
from app.documents.records import Counts, Document
from app.documents.states import DocumentState

START = datetime(2026, 1, 1, tzinfo=UTC)

DOCUMENT = Document(
    id="d",
    tenant="default",
    state=DocumentState.RUNNING,
    filename="f.pdf",
    media_type="application/pdf",
    bytes=1,
    sha256="",
    blob_key="",
    profile="cpu",
    priority=3,
    counts=Counts(10, queued=4, running=2, succeeded=3, failed=1),
    seq=5,
    retries=0,
    created_at=START,
    started_at=START,
    ended_at=None,
    expires_at=None,
    metadata={},
    warnings=(),
    error=None,
)


def test_rate_and_rest_of_a_running_document() -> None:
    progress = progress_of(DOCUMENT, START + timedelta(seconds=2))
    assert (progress.pages_per_second, progress.eta_seconds) == (2.0, 3.0)


def test_nothing_is_said_before_the_first_page() -> None:
    waiting = replace(DOCUMENT, started_at=None)
    fresh = replace(DOCUMENT, counts=Counts(10, running=10))
    assert progress_of(waiting, START).eta_seconds is None
    assert progress_of(fresh, START + timedelta(seconds=9)).eta_seconds is None


def test_an_ended_document_has_nothing_left() -> None:
    ended = replace(DOCUMENT, state=DocumentState.PARTIAL, ended_at=START + timedelta(seconds=4))
    assert progress_of(ended, START + timedelta(days=1)).pages_per_second == 1.0
    assert progress_of(ended, START + timedelta(days=1)).eta_seconds == 0


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        (Counts(2, succeeded=2), DocumentState.SUCCEEDED),
        (Counts(2, succeeded=1, failed=1), DocumentState.PARTIAL),
        (Counts(2, failed=2), DocumentState.FAILED),
    ],
)
def test_final_state(counts: Counts, state: DocumentState) -> None:
    assert counts.final_state() is state
