from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.documents.progress import progress_of
from app.documents.records import Counts, Document, Outlook
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


WAITING = replace(DOCUMENT, state=DocumentState.QUEUED, started_at=None, counts=Counts(10, queued=10))
BEGUN = replace(DOCUMENT, counts=Counts(10, queued=8, running=2))


def test_a_document_that_waits_has_a_position_and_the_time_of_what_lies_before_its_end() -> None:
    progress = progress_of(WAITING, START, Outlook(position=3, pages_ahead=60, pages_per_second=2.5))
    assert (progress.queue_position, progress.pages_per_second, progress.eta_seconds) == (3, None, 24.0)


def test_a_document_that_has_begun_has_no_position() -> None:
    progress = progress_of(BEGUN, START + timedelta(seconds=9), Outlook(1, pages_ahead=10, pages_per_second=2.5))
    assert (progress.queue_position, progress.eta_seconds) == (None, 4.0)


def test_no_time_is_told_while_the_rate_is_not_known() -> None:
    progress = progress_of(WAITING, START, Outlook(position=3, pages_ahead=60, pages_per_second=0))
    assert (progress.queue_position, progress.eta_seconds) == (3, None)


def test_a_documents_own_pace_says_more_than_what_lies_before_it() -> None:
    progress = progress_of(DOCUMENT, START + timedelta(seconds=2), Outlook(1, pages_ahead=999, pages_per_second=1))
    assert (progress.queue_position, progress.pages_per_second, progress.eta_seconds) == (None, 2.0, 3.0)


def test_a_document_that_was_cancelled_unread_has_nothing_ahead() -> None:
    cancelled = replace(WAITING, state=DocumentState.CANCELLED, counts=Counts(10, cancelled=10), ended_at=START)
    progress = progress_of(cancelled, START, Outlook(1, pages_ahead=10, pages_per_second=1))
    assert (progress.queue_position, progress.eta_seconds) == (None, None)


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
