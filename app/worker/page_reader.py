"""One claimed page, from drawing to outcome: render → route → judge, with retries on other lanes."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from app.documents.media_types import PDF
from app.documents.records import Claim, PageOutcome, PageSeconds, Warn
from app.documents.states import OnPageError, PageState, Source
from app.errors import (
    AnswerTruncated,
    AttemptError,
    AttemptTimeout,
    DeadlineExceeded,
    PageError,
    PagefleetError,
    Problem,
    ReplicaError,
    ServiceError,
    SourceUnavailable,
)
from app.fleet import Answer, Attempt
from app.profiles import Profile, Profiles, Reading
from app.rendering import Drawing, Rendering
from app.telemetry import metrics
from app.telemetry.logs import get_logger
from app.worker.dispatcher import Dispatcher
from app.worker.images import ImageBuffer
from app.worker.source_files import SourceFiles

MAX_CHARGED_ATTEMPTS = 3

BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 5.0

_logger = get_logger("worker")


@dataclass(slots=True)
class Progress:
    """What has been spent on a page so far; outlives the reading, for a page that is handed back."""

    attempts: int
    """Attempts charged to the page, over all its claims."""
    failed_lanes: set[str] = field(default_factory=set)
    faults_in_a_row: int = 0
    in_flight: bool = False
    """Whether the page is on a lane now."""


class PageReader:
    def __init__(
        self,
        profiles: Profiles,
        files: SourceFiles,
        rendering: Rendering,
        dispatcher: Dispatcher,
        image_buffer: ImageBuffer,
    ) -> None:
        self._profiles = profiles
        self._files = files
        self._rendering = rendering
        self._dispatcher = dispatcher
        self._image_buffer = image_buffer

    async def read(self, claim: Claim, progress: Progress) -> PageOutcome:
        """Read the page; whatever is wrong with it, or with every lane's answer, is an outcome too.

        Raises `ServiceError` for what is the service's own trouble and says nothing about the page.
        """
        try:
            # Before the page gets its turn to be drawn: while its file is not there, others may have it.
            async with self._files.local(claim.blob_key) as path:
                return await self._read(path, claim, progress)
        except SourceUnavailable as error:
            return PageOutcome(PageState.FAILED, attempts=progress.attempts, error=_problem(error, claim))

    async def _read(self, path: Path, claim: Claim, progress: Progress) -> PageOutcome:
        profile = self._profiles[claim.profile]
        drawing: Drawing | None = None
        try:
            async with self._image_buffer.hold(partial(self._draw, path, claim, profile)) as drawing:
                if drawing.blank:
                    return _blank_outcome(claim, profile, drawing, progress)
                return await self._read_image(claim, profile, drawing, progress)
        except ServiceError:
            raise
        except PagefleetError as error:
            failed = PageOutcome(
                PageState.FAILED,
                profile=profile.name,
                attempts=progress.attempts,
                size=drawing.size if drawing else None,
                warnings=drawing.warnings if drawing else (),
                error=_problem(error, claim),
            )
            return await self._with_text_layer(path, claim, error, failed)

    async def _with_text_layer(
        self, path: Path, claim: Claim, error: PagefleetError, failed: PageOutcome
    ) -> PageOutcome:
        """The page's own text, where the user asked for it to stand in for a page that failed and there is any."""
        if claim.on_page_error is not OnPageError.TEXT_LAYER or claim.media_type != PDF:
            return failed
        try:
            text = await self._rendering.text(path, claim.page, claim.password)
        except ServiceError:
            raise
        except PagefleetError as second:
            _logger.warning("no text layer", document_id=claim.document_id, page=claim.page, code=second.code())
            return failed
        if not text.strip():
            return failed
        warning = Warn(error.code(), f"the page's own text stands in: {error.detail}")
        return replace(
            failed,
            state=PageState.SUCCEEDED,
            source=Source.TEXT_LAYER,
            text=text.strip(),
            warnings=(*failed.warnings, warning),
            error=None,
        )

    async def _draw(self, path: Path, claim: Claim, profile: Profile) -> Drawing:
        drawing = await self._rendering.draw(path, claim.media_type, claim.page, profile.image, claim.password)
        metrics.PAGE_RENDER_SECONDS.observe(drawing.seconds)
        return drawing

    async def _read_image(self, claim: Claim, profile: Profile, drawing: Drawing, progress: Progress) -> PageOutcome:
        while True:
            with await self._dispatcher.attempt(claim, profile, progress.failed_lanes) as attempt:
                progress.in_flight = True
                waited = _waited_seconds(claim, drawing)
                try:
                    answer, reading = await _ask(attempt, profile, drawing)
                    return _good_outcome(attempt, profile, drawing, answer, reading, progress, waited)
                except (AttemptError, PageError) as error:
                    _logger.warning(
                        "attempt failed",
                        document_id=claim.document_id,
                        page=claim.page,
                        lane=attempt.lane.id,
                        code=error.code(),
                        detail=error.detail,
                    )
                    progress.failed_lanes.add(attempt.lane.id)
                    _charge(error, progress)
                finally:
                    progress.in_flight = False
            await asyncio.sleep(backoff_seconds(progress.faults_in_a_row))


async def _ask(attempt: Attempt, profile: Profile, drawing: Drawing) -> tuple[Answer, Reading]:
    before, after = profile.request(attempt.model)
    answer = await attempt.complete((before, drawing.image_base64, after))
    try:
        return answer, profile.judge(answer.text, answer.finish_reason, answer.extra)
    except PageError as error:
        attempt.fail(error.code())
        raise


def _charge(error: AttemptError | PageError, progress: Progress) -> None:
    """Note a failed attempt; raises the page's error when no further attempt is worth it.

    What a replica refuses (4xx) it refuses again, and at temperature 0 an answer that ran into the token limit does so
    on every lane: those are final.
    """
    progress.faults_in_a_row += 1
    charged = not isinstance(error, AttemptError) or error.charged
    progress.attempts += charged
    final = isinstance(error, AnswerTruncated) or (isinstance(error, AttemptError) and error.final)
    if not final and progress.attempts < MAX_CHARGED_ATTEMPTS:
        return
    if isinstance(error, PageError):
        raise error
    if isinstance(error, AttemptTimeout):
        raise DeadlineExceeded(error.detail) from error
    raise ReplicaError(error.detail) from error


def backoff_seconds(faults: int) -> float:
    """Pause of a page after that many faults in a row, of which there may be thousands: a full lane charges none."""
    doublings = min(faults, int(MAX_BACKOFF_SECONDS / BACKOFF_SECONDS))
    return min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0**doublings)


def _good_outcome(
    attempt: Attempt,
    profile: Profile,
    drawing: Drawing,
    answer: Answer,
    reading: Reading,
    progress: Progress,
    waited: float,
) -> PageOutcome:
    metrics.PAGE_WAIT_SECONDS.observe(waited)
    metrics.PAGE_SERVICE_SECONDS.observe(answer.seconds)
    return PageOutcome(
        PageState.SUCCEEDED,
        source=Source.MODEL,
        text=reading.text,
        profile=profile.name,
        model=answer.model,
        lane=attempt.lane.id,
        attempts=progress.attempts + 1,
        seconds=PageSeconds(waited, drawing.seconds, answer.seconds),
        size=drawing.size,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        confidence=reading.confidence,
        warnings=(*drawing.warnings, *reading.warnings),
    )


def _blank_outcome(claim: Claim, profile: Profile, drawing: Drawing, progress: Progress) -> PageOutcome:
    """Of a page on which nothing stands. A model is not asked: it would invent a text."""
    return PageOutcome(
        PageState.SUCCEEDED,
        source=Source.BLANK,
        profile=profile.name,
        attempts=progress.attempts,
        seconds=PageSeconds(_waited_seconds(claim, drawing), drawing.seconds),
        size=drawing.size,
        warnings=drawing.warnings,
    )


def _problem(error: PagefleetError, claim: Claim) -> Problem:
    return {**error.problem(), "page": claim.page}


def _waited_seconds(claim: Claim, drawing: Drawing) -> float:
    """Since the page became claimable, but for its drawing; never negative, whatever the clocks say."""
    return max(0.0, (datetime.now(UTC) - claim.queued_at).total_seconds() - drawing.seconds)
