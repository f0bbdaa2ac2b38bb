"""The gateway's way to page images and page counts."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Generic, TypeVar

from app.documents.records import ImageSpec
from app.errors import (
    DamagedPdf,
    InspectTimeout,
    PageDamaged,
    PageError,
    PagefleetError,
    RenderFailed,
    RenderTimeout,
    RequestError,
)
from app.rendering.answers import read_drawing, read_fault, read_inspection
from app.rendering.frames import Frame, Header
from app.rendering.pool import Pool, Slot, WorkerLost
from app.rendering.results import Drawing, Inspection
from app.settings import MIB, Settings
from app.telemetry.logs import get_logger

T = TypeVar("T")

FIRST_SHARE = 0.6
"""Share of the inspection time that the first renderer gets; the second has the rest."""
BASE64_BYTES_PER_PIXEL = 4
"""Three channels, four characters for three bytes: no encoded page is larger, but for headers."""
MAX_PASSWORD_CHARS = 127
"""What follows is no part of a PDF's password (ISO 32000-2, 7.6.4.3.3)."""

_logger = get_logger("rendering")


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    header: Header
    read: Callable[[Frame], T]
    seconds: tuple[float, float]
    """Wall and CPU time of the first and of the second renderer."""
    timed_out: type[PagefleetError]
    failed: type[PagefleetError]


class Rendering:
    """Two pools of render processes, so that an upload never waits behind pages.

    What the first renderer can't do is tried once with the second; if that fails too, the first's error is raised.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        size, memory = settings.render_workers, settings.render_memory_bytes
        self._inspectors = Pool(size, memory, max_payload_bytes=0)
        self._drawers = Pool(size, memory, max_payload_bytes=settings.max_pixels * BASE64_BYTES_PER_PIXEL + MIB)

    async def inspect(self, path: Path, password: str | None = None) -> Inspection:
        """Count the pages of the file at `path`.

        Raises `DamagedPdf`, `NoPages`, `PasswordRequired`, `PasswordWrong`, `PdfLocked`, `UnsupportedType`,
        `InspectTimeout`, `Busy`, `Draining`, `StoreUnavailable` (no file there) and `InternalError`.
        """
        limit = self._settings.inspect_seconds
        job = _Job(
            header={"job": "inspect", **_file(path, password)},
            read=read_inspection,
            seconds=(limit * FIRST_SHARE, limit * (1 - FIRST_SHARE)),
            timed_out=InspectTimeout,
            failed=DamagedPdf,
        )
        async with self._inspectors.slot(self._settings.inspect_wait_seconds) as slot:
            return await _do(job, slot)

    async def draw(self, path: Path, page: int, spec: ImageSpec, password: str | None = None) -> Drawing:
        """Draw page `page` (from 1) of the file at `path`, when a worker is free.

        Raises `PageTooLarge`, `PageDamaged`, `RenderFailed`, `RenderTimeout`; `Draining`, `StoreUnavailable` and
        `InternalError`; and what `inspect` raises of a file that can't be opened (any more).
        """
        limit = self._settings.render_seconds
        job = _Job(
            header={
                "job": "draw",
                **_file(path, password),
                "page": page,
                "image": asdict(spec),
                "max_pixels": self._settings.max_pixels,
            },
            read=partial(read_drawing, spec=spec),
            seconds=(limit, limit),
            timed_out=RenderTimeout,
            failed=RenderFailed,
        )
        async with self._drawers.slot() as slot:
            started = perf_counter()
            drawing = await _do(job, slot)
            return replace(drawing, seconds=perf_counter() - started)

    async def close(self) -> None:
        """End all workers; jobs in progress get `Draining`."""
        await self._inspectors.close()
        await self._drawers.close()

    def worker_pids(self) -> list[int]:
        """Of the workers that live: those that inspect, then those that draw."""
        return self._inspectors.pids() + self._drawers.pids()


def _file(path: Path, password: str | None) -> Header:
    return {"path": str(path), "password": password if password is None else password[:MAX_PASSWORD_CHARS]}


async def _do(job: _Job[T], slot: Slot) -> T:
    try:
        return await _ask(job, slot, "mupdf", job.seconds[0])
    except (RequestError, PageError) as first:
        try:
            # A page that the first renderer found damaged is not good because the second silently draws nothing.
            return await _ask(job, slot, "pdfium", job.seconds[1], blank_is_damage=isinstance(first, PageDamaged))
        except (RequestError, PageError):
            raise first from None


async def _ask(job: _Job[T], slot: Slot, renderer: str, seconds: float, blank_is_damage: bool = False) -> T:
    header = {**job.header, "renderer": renderer, "cpu_seconds": seconds, "blank_is_damage": blank_is_damage}
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
