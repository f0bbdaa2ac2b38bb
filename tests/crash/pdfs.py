"""Documents whose pages carry codes."""

from collections.abc import Iterable

import pymupdf

from tests.crash.codes import HEIGHT_POINTS, MARGIN_POINTS, SQUARE_POINTS, WIDTH_POINTS, PageCode


def coded_pdf(codes: Iterable[PageCode]) -> bytes:
    """A PDF with one page for each of `codes`."""
    document = pymupdf.open()
    for code in codes:
        page = document.new_page(width=WIDTH_POINTS, height=HEIGHT_POINTS)
        for column, row in code.squares():
            left, top = MARGIN_POINTS + column * SQUARE_POINTS, MARGIN_POINTS + row * SQUARE_POINTS
            square = pymupdf.Rect(left, top, left + SQUARE_POINTS, top + SQUARE_POINTS)
            page.draw_rect(square, color=None, fill=(0, 0, 0))
    data: bytes = document.tobytes()
    document.close()
    return data
