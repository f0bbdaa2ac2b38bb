"""The gateway's way to page images and page counts."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Generic, TypeVar

from app.documents.media_types import PDF
from app.documents.records import ImageSpec
from app.errors import (
    DamagedImage,
    DamagedPdf,
    InspectTimeout,
    PageDamaged,
    PageError,
    PagefleetError,
    RenderFailed,
    RenderTimeout,
    RequestError,
)
from app.rendering.answers import read_drawing, read_fault, read_inspection, read_text
from app.rendering.frames import Frame, Header
from app.rendering.pool import Pool, Slot, WorkerLost
from app.rendering.results import Drawing, Inspection
from app.settings import MIB, Settings
from app.telemetry.logs import get_logger

T = TypeVar("T")

PDF_RENDERERS = ("mupdf", "pdfium")
IMAGE_RENDERERS = ("pillow",)
FIRST_SHARE = 0.6
"""Share of a PDF's inspection time that the first renderer gets; the second has the rest."""
BASE64_BYTES_PER_PIXEL = 4
"""Three channels, four characters for three bytes: no encoded page is larger, but for headers."""
MAX_PASSWORD_CHARS = 127
"""What follows is no part of a PDF's password (ISO 32000-2, 7.6.4.3.3)."""

_logger = get_logger("rendering")


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    header: Header
    read: Callable[[Frame], T]
    tries: tuple[tuple[str, float], ...]
    """Renderers, and the wall and CPU time of each in seconds."""
    timed_out: type[PagefleetError]
    failed: type[PagefleetError]


class Rendering:
    """Two pools of render processes, so that an upload never waits behind pages.

    What the first renderer of PDFs can't do is tried once with the second; if that fails too, the first's error is
    raised. Images have one renderer.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        size, memory = settings.render_workers, settings.render_memory_bytes
        self._inspectors = Pool(size, memory, max_payload_bytes=0)
        self._drawers = Pool(size, memory, max_payload_bytes=settings.max_pixels * BASE64_BYTES_PER_PIXEL + MIB)

    async def inspect(self, path: Path, media_type: str, password: str | None = None) -> Inspection:
        """Count the pages of the file at `path`: a PDF, or an image of a type that is read.

        Raises `DamagedPdf`, `NoPages`, `PasswordRequired`, `PasswordWrong`, `PdfLocked`, `UnsupportedType`,
        `DamagedImage`, `ImageTooLarge`, `InspectTimeout`, `Busy`, `Draining` and `StoreUnavailable` (no file there).
        """
        job = _Job(
            header={"job": "inspect", **_file(path, password)},
            read=read_inspection,
            tries=_inspection_tries(media_type, self._settings.inspect_seconds),
            timed_out=InspectTimeout,
            failed=DamagedPdf if media_type == PDF else DamagedImage,
        )
        async with self._inspectors.slot(self._settings.inspect_wait_seconds) as slot:
            return await _do(job, slot)

    async def draw(
        self, path: Path, media_type: str, page: int, spec: ImageSpec, password: str | None = None
    ) -> Drawing:
        """Draw page `page` (from 1) of the file at `path`, when a worker is free.

        Raises `PageTooLarge`, `PageDamaged`, `RenderFailed`, `RenderTimeout`; `Busy`, `Draining` and
        `StoreUnavailable`; and what `inspect` raises of a file that can't be opened (any more).
        """
        job = self._page_job(
            {"job": "draw", "image": asdict(spec), "max_pixels": self._settings.max_pixels},
            _file(path, password),
            page,
            partial(read_drawing, spec=spec),
            PDF_RENDERERS if media_type == PDF else IMAGE_RENDERERS,
        )
        async with self._drawers.slot() as slot:
            started = perf_counter()
            drawing = await _do(job, slot)
            return replace(drawing, seconds=perf_counter() - started)

    async def text(self, path: Path, page: int, password: str | None = None) -> str:
        """The text layer of page `page` (from 1) of the PDF at `path`, hidden text too; empty where there is none.

        It says what the file says, which need not be what the page shows. Raises as `draw` does.
        """
        job = self._page_job({"job": "text"}, _file(path, password), page, read_text, PDF_RENDERERS)
        async with self._drawers.slot() as slot:
            return await _do(job, slot)

    def _page_job(
        self, header: Header, file: Header, page: int, read: Callable[[Frame], T], renderers: tuple[str, ...]
    ) -> _Job[T]:
        return _Job(
            header={**header, **file, "page": page},
            read=read,
            tries=tuple((renderer, self._settings.render_seconds) for renderer in renderers),
            timed_out=RenderTimeout,
            failed=RenderFailed,
        )

    async def close(self) -> None:
        """End all workers; jobs in progress get `Draining`."""
        await self._inspectors.close()
        await self._drawers.close()

    def worker_pids(self) -> list[int]:
        """Of the workers that live: those that inspect, then those that draw."""
        return self._inspectors.pids() + self._drawers.pids()


def _file(path: Path, password: str | None) -> Header:
    return {"path": str(path), "password": password if password is None else password[:MAX_PASSWORD_CHARS]}


def _inspection_tries(media_type: str, seconds: float) -> tuple[tuple[str, float], ...]:
    if media_type != PDF:
        return tuple((renderer, seconds) for renderer in IMAGE_RENDERERS)
    return tuple(zip(PDF_RENDERERS, (seconds * FIRST_SHARE, seconds * (1 - FIRST_SHARE)), strict=True))


async def _do(job: _Job[T], slot: Slot) -> T:
    first, *others = job.tries
    try:
        return await _ask(job, slot, *first)
    except (RequestError, PageError) as error:
        # A page that the first renderer found damaged is not good because the second silently draws nothing.
        blank_is_damage = isinstance(error, PageDamaged)
        for other in others:
            with suppress(RequestError, PageError):
                return await _ask(job, slot, *other, blank_is_damage=blank_is_damage)
        raise


async def _ask(job: _Job[T], slot: Slot, renderer: str, seconds: float, blank_is_damage: bool = False) -> T:
    header = {
        **job.header,
        "renderer": renderer,
        "cpu_seconds": seconds,
        "failed": job.failed.code(),
        "blank_is_damage": blank_is_damage,
    }
    try:
        answer = await slot.call(header, partial(_read, job.read, renderer), seconds)
    except WorkerLost as lost:
        raise (job.timed_out if lost.out_of_time else job.failed)() from lost
    if isinstance(answer, PagefleetError):
        raise answer
    return answer


def _read(read: Callable[[Frame], T], renderer: str, frame: Frame) -> T | PagefleetError:
    fault = read_fault(frame)
    if fault is None:
        return read(frame)
    error, cause = fault
    _logger.info("renderer failed", renderer=renderer, code=error.code(), cause=cause)
    return error
