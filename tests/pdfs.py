"""PDFs made for tests."""

from collections.abc import Sequence

import pymupdf

A4 = (595, 842)


def text_pdf(pages: Sequence[str], size: tuple[float, float] = A4, fontsize: float = 14) -> bytes:
    """A PDF with one page for each text, set in Helvetica from the top left corner."""
    document = pymupdf.open()
    for text in pages:
        page = document.new_page(width=size[0], height=size[1])
        page.insert_textbox(pymupdf.Rect(36, 36, size[0] - 36, size[1] - 36), text, fontsize=fontsize)
    data: bytes = document.tobytes()
    document.close()
    return data


def numbered_pdf(count: int, word: str = "PAGE") -> bytes:
    """`count` small pages that are quick to draw and to read: `word` and the page's number."""
    return text_pdf([f"{word} {number}" for number in range(1, count + 1)], size=(240, 120), fontsize=24)
