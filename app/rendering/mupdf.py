"""The first renderer: MuPDF, by PyMuPDF."""

from typing import Any

import pymupdf
from PIL import Image

from app.documents.records import ImageSpec, Warn
from app.errors import (
    DamagedPdf,
    NoPages,
    PageDamaged,
    PageTooLarge,
    PasswordRequired,
    PasswordWrong,
    PdfLocked,
    RenderFailed,
    StoreUnavailable,
    UnsupportedType,
)
from app.rendering.renderer import INCOMPLETE, Raster
from app.rendering.results import Inspection
from app.rendering.scale import zoom

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)

# MuPDF's own errors (pymupdf.mupdf.FzErrorBase) and PyMuPDF's (RuntimeError, ValueError) share no base but this.
_MuPdfError = Exception
_BLOCK_TEXT = 4
"""Index in a block, after its four coordinates."""


def open_file(path: str, password: str | None) -> "MuPdfFile":
    try:
        document = pymupdf.open(path, filetype="pdf")
    except pymupdf.FileNotFoundError as error:
        raise StoreUnavailable("the file is gone") from error
    except _MuPdfError as error:
        if "unknown encryption handler" in str(error.__cause__):
            raise PdfLocked from error.__cause__
        raise DamagedPdf from error.__cause__ or error
    # HTML, images and e-books open too, whatever `filetype` says.
    if not document.is_pdf:
        raise UnsupportedType("the file is no PDF")
    if document.needs_pass:
        if password is None:
            raise PasswordRequired
        if not document.authenticate(password):
            raise PasswordWrong
    return MuPdfFile(document)


class MuPdfFile:
    def __init__(self, document: Any) -> None:
        self._document = document

    def inspect(self) -> Inspection:
        try:
            pages = self._document.page_count
        except _MuPdfError as error:
            raise DamagedPdf from error
        if pages == 0:
            raise NoPages
        return Inspection(pages, self._warnings())

    def draw(self, page: int, spec: ImageSpec, max_pixels: int) -> Raster:
        shown = self._page(page)
        size = (round(shown.rect.width, 3), round(shown.rect.height, 3))
        scale = zoom(size, spec.longest_side_pixels, max_pixels)
        pymupdf.TOOLS.reset_mupdf_warnings()
        raster = Raster(_pixels(shown, scale), size)
        return _judge(raster, pymupdf.TOOLS.mupdf_warnings())

    def text(self, page: int) -> str:
        shown = self._page(page)
        try:
            # Without the flag that keeps images: to list them it would decode them, which takes up to seconds.
            blocks = shown.get_text("blocks", flags=pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP)
        except _MuPdfError as error:
            raise RenderFailed from error
        return "\n\n".join(block[_BLOCK_TEXT].strip() for block in blocks)

    def close(self) -> None:
        self._document.close()

    def _page(self, number: int) -> Any:
        try:
            return self._document.load_page(number - 1)
        except _MuPdfError as error:
            raise PageDamaged from error

    def _warnings(self) -> tuple[Warn, ...]:
        warnings = []
        if self._document.is_repaired:
            warnings.append(Warn("file_repaired", "the file is damaged and was repaired: pages may be missing"))
        catalog = self._document.pdf_catalog()
        if self._document.xref_get_key(catalog, "NeedsRendering") == ("bool", "true"):
            warnings.append(Warn("xfa_form", "a dynamic XFA form: only its placeholder page can be read"))
        return tuple(warnings)


def _pixels(page: Any, scale: float) -> Image.Image:
    try:
        pixmap = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csRGB, alpha=False)
    except (pymupdf.mupdf.FzErrorSystem, pymupdf.mupdf.FzErrorLimit) as error:  # malloc failed; overly large image
        raise PageTooLarge from error
    except _MuPdfError as error:
        raise RenderFailed from error
    return Image.frombytes("RGB", (pixmap.width, pixmap.height), pixmap.samples_mv, "raw", "RGB", pixmap.stride, 1)


def _judge(raster: Raster, messages: str) -> Raster:
    """Tell damage from blank: what MuPDF can't draw it leaves out without an exception, with a message only.

    A page with messages and nothing drawn is damaged. One that shows something is incomplete where a message speaks of
    an error; the others are about fonts and colour profiles that were replaced.
    """
    lines = [line for line in messages.splitlines() if not line.startswith("... repeated")]
    if lines and raster.is_plain():
        raise PageDamaged from RuntimeError(lines[0])
    if any("error" in line for line in lines):
        return Raster(raster.image, raster.size, (INCOMPLETE,))
    return raster
