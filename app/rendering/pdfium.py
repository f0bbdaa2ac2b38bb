"""The second renderer: PDFium, by pypdfium2; asked when the first fails."""

from contextlib import closing
from pathlib import Path

import pypdfium2
from pypdfium2 import raw

from app.documents.records import ImageSpec
from app.errors import (
    DamagedPdf,
    NoPages,
    PageDamaged,
    PasswordRequired,
    PasswordWrong,
    PdfLocked,
    RenderFailed,
    StoreUnavailable,
)
from app.rendering.renderer import Raster
from app.rendering.results import Inspection
from app.rendering.scale import zoom


def open_file(path: str, password: str | None) -> "PdfiumFile":
    if not Path(path).is_file():
        raise StoreUnavailable("the file is gone")
    try:
        document = pypdfium2.PdfDocument(path, password)
        document.init_forms()
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise (PasswordWrong if password else PasswordRequired) from error
        raise (PdfLocked if error.err_code == raw.FPDF_ERR_SECURITY else DamagedPdf) from error
    return PdfiumFile(document)


class PdfiumFile:
    def __init__(self, document: pypdfium2.PdfDocument) -> None:
        self._document = document

    def inspect(self) -> Inspection:
        pages = len(self._document)
        if pages == 0:
            raise NoPages
        return Inspection(pages)

    def draw(self, page: int, spec: ImageSpec, max_pixels: int) -> Raster:
        with closing(self._page(page)) as shown:
            return _raster(shown, spec, max_pixels)

    def text(self, page: int) -> str:
        with closing(self._page(page)) as shown:
            try:
                with closing(shown.get_textpage()) as text:
                    return str(text.get_text_bounded()).strip()
            except pypdfium2.PdfiumError as error:
                raise RenderFailed from error

    def close(self) -> None:
        self._document.close()

    def _page(self, number: int) -> pypdfium2.PdfPage:
        try:
            return self._document[number - 1]
        except (pypdfium2.PdfiumError, IndexError) as error:
            raise PageDamaged from error


def _raster(page: pypdfium2.PdfPage, spec: ImageSpec, max_pixels: int) -> Raster:
    width, height = page.get_size()
    # A hair smaller, because pypdfium2 rounds sides up: 1288.0000000000002 pixels would become 1289.
    scale = zoom((width, height), spec.longest_side_pixels, max_pixels) * (1 - 1e-9)
    try:
        bitmap = page.render(scale=scale)
    except (pypdfium2.PdfiumError, ValueError) as error:
        raise RenderFailed from error
    return Raster(bitmap.to_pil(), (round(width, 3), round(height, 3)))
