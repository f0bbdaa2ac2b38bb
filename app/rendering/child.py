"""A render process: `python -m app.rendering.child MEMORY_BYTES`. Jobs on standard input, answers on standard output.

Every job is answered by one frame: a result or a fault. The end of standard input ends the process.
"""

import os
import sys
from importlib import import_module
from typing import BinaryIO, cast

from app.documents.records import ImageSpec
from app.errors import PageDamaged, PagefleetError, PageTooLarge
from app.lifeline import die_with_parent
from app.rendering.answers import drawing_frame, fault_frame, fault_named, inspection_frame, text_frame
from app.rendering.frames import Frame, Header, read_frame
from app.rendering.limits import limit_process, renew_cpu_limit
from app.rendering.renderer import OpenFile, Renderer
from app.rendering.results import Drawing


class Child:
    """Does jobs; keeps the file of the last drawing open, since its other pages tend to follow."""

    def __init__(self) -> None:
        self._file: OpenFile | None = None
        self._opened: tuple[str, str, str | None] | None = None

    def answer(self, job: Header) -> Frame:
        renew_cpu_limit(job["cpu_seconds"])
        try:
            return self._do(job)
        except Exception as error:
            self._close()  # nothing that failed is used again
            return fault_frame(_fault(error, job))

    def _do(self, job: Header) -> Frame:
        match job["job"]:
            case "inspect":
                return self._inspect(job)
            case "draw":
                return self._draw(job)
            case _:
                return text_frame(self._open(job).text(job["page"]))

    def _inspect(self, job: Header) -> Frame:
        inspection = self._open(job).inspect()
        self._close()
        return inspection_frame(inspection)

    def _draw(self, job: Header) -> Frame:
        from app.rendering.blank import is_blank  # with Pillow, once the limits are set
        from app.rendering.encode import encode_base64, grey_if_grey

        spec = ImageSpec(**job["image"])
        raster = self._open(job).draw(job["page"], spec, job["max_pixels"])
        if job["blank_is_damage"] and raster.is_plain():
            raise PageDamaged
        image = grey_if_grey(raster.image)
        return drawing_frame(
            Drawing(
                image_base64=encode_base64(image, spec.media_type),
                media_type=spec.media_type,
                width=image.width,
                height=image.height,
                size=raster.size,
                blank=not raster.warnings and is_blank(image),
                warnings=raster.warnings,
            )
        )

    def _open(self, job: Header) -> OpenFile:
        wanted = (job["renderer"], job["path"], job["password"])
        if self._file is None or self._opened != wanted:
            self._close()
            self._file = load_renderer(job["renderer"]).open_file(job["path"], job["password"])
            self._opened = wanted
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def load_renderer(name: str) -> Renderer:
    """`mupdf`, `pdfium` or `pillow`; the last two are loaded only by a process that needs them."""
    return cast(Renderer, import_module(f"app.rendering.{name}"))


def claim_stdout() -> BinaryIO:
    """The real standard output; what else is printed, by C libraries too, goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _fault(error: Exception, job: Header) -> PagefleetError:
    if isinstance(error, PagefleetError):
        return error
    fault = PageTooLarge() if isinstance(error, MemoryError) else fault_named(job["failed"])
    fault.__cause__ = error
    return fault


def main() -> None:
    die_with_parent()
    limit_process(int(sys.argv[1]))
    answers = claim_stdout()
    load_renderer("mupdf")
    child = Child()
    answer = Frame({"ready": True})
    while True:
        answers.writelines(answer.parts())
        answers.flush()
        job = read_frame(sys.stdin.buffer)
        if job is None:
            return
        answer = child.answer(job.header)


if __name__ == "__main__":
    main()
