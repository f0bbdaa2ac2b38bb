"""The pages that the engine must read, each with the text that is on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import pymupdf
from PIL import Image

from tests.accuracy import texts

A4_POINTS = (595, 842)
MARGIN_POINTS = 60
WIDTH_POINTS = A4_POINTS[0] - 2 * MARGIN_POINTS
SCAN_DPI = 200
_LEADING = 1.25
"""Baseline to baseline in font sizes."""
_GUTTER_POINTS = 20


@dataclass(frozen=True)
class Sheet:
    """A page and what stands on it, block by block in reading order."""

    image: Image.Image
    blocks: Sequence[str]


class Press:
    """Sets blocks of text on one A4 page."""

    def __init__(self) -> None:
        self._document = pymupdf.open()
        self._page = self._document.new_page(width=A4_POINTS[0], height=A4_POINTS[1])
        self._blocks: list[str] = []

    def block(
        self,
        text: str,
        top: float,
        *,
        left: float = MARGIN_POINTS,
        width: float = WIDTH_POINTS,
        font: str = "helv",
        size: float = 11,
    ) -> float:
        """Set a block of text; where the next one may start, in points from the top of the page."""
        bottom = self.mark(text, top, left=left, width=width, font=font, size=size)
        self._blocks.append(text)
        return bottom + 0.6 * size

    def mark(self, text: str, top: float, *, left: float, width: float, font: str, size: float) -> float:
        """Set text that is a part of a block, or none; its lower edge."""
        writer = pymupdf.TextWriter(self._page.rect)
        box = pymupdf.Rect(left, top, left + width, A4_POINTS[1])
        writer.fill_textbox(
            box, text, font=pymupdf.Font(font), fontsize=size, lineheight=_LEADING, align=pymupdf.TEXT_ALIGN_LEFT
        )
        writer.write_text(self._page)
        bottom: float = writer.text_rect.y1
        return bottom

    def column(
        self,
        paragraphs: Sequence[str],
        top: float,
        *,
        left: float = MARGIN_POINTS,
        width: float = WIDTH_POINTS,
        font: str = "helv",
        size: float = 11,
    ) -> float:
        for text in paragraphs:
            top = self.block(text, top, left=left, width=width, font=font, size=size)
        return top

    def table(self, cells: Sequence[Sequence[str]], top: float, *, ruled: bool, size: float = 10) -> float:
        """A table over the width of the page; each row is a block."""
        pitch = 1.9 * size
        width = WIDTH_POINTS / len(cells[0])
        for number, row in enumerate(cells):
            for column, text in enumerate(row):
                left = MARGIN_POINTS + column * width + 5
                self.mark(text, top + number * pitch + 2, left=left, width=width, font="helv", size=size)
            self._blocks.append(" ".join(row))
        bottom = top + len(cells) * pitch
        if ruled:
            for number in range(len(cells) + 1):
                self._line(MARGIN_POINTS, top + number * pitch, MARGIN_POINTS + WIDTH_POINTS, top + number * pitch)
            for column in range(len(cells[0]) + 1):
                self._line(MARGIN_POINTS + column * width, top, MARGIN_POINTS + column * width, bottom)
        return bottom + size

    def items(self, items: Sequence[str], top: float, *, marker: str, size: float = 11) -> float:
        """A list with hanging indents; `marker` may hold the item's `{number}`."""
        for number, text in enumerate(items, start=1):
            mark = marker.format(number=number)
            self.mark(mark, top, left=MARGIN_POINTS, width=30, font="helv", size=size)
            top = self.mark(text, top, left=MARGIN_POINTS + 18, width=WIDTH_POINTS - 18, font="helv", size=size) + 3
            self._blocks.append(f"{mark} {text}")
        return top + size

    def sheet(self, dpi: int = SCAN_DPI) -> Sheet:
        pixels = self._page.get_pixmap(dpi=dpi)
        return Sheet(Image.frombytes("RGB", (pixels.width, pixels.height), pixels.samples), self._blocks)

    def _line(self, left: float, top: float, right: float, bottom: float) -> None:
        self._page.draw_line((left, top), (right, bottom), width=0.7)


def prose(paragraphs: Sequence[str], *, font: str = "helv", size: float = 11, dpi: int = SCAN_DPI) -> Sheet:
    """One column."""
    press = Press()
    press.column(paragraphs, MARGIN_POINTS, font=font, size=size)
    return press.sheet(dpi)


def columns(count: int, *, size: float, dpi: int = SCAN_DPI) -> Sheet:
    """A running head, a title over the whole width, then `count` columns."""
    press = Press()
    width = (WIDTH_POINTS - (count - 1) * _GUTTER_POINTS) / count
    press.block("The Quay, volume 6, page 308", 36, size=8)
    top = press.block("A library that keeps the time of the tides", MARGIN_POINTS + 10, font="hebo", size=22) + 10
    for column in range(count):
        press.column(
            texts.ENGLISH[2 * column : 2 * column + 2],
            top,
            left=MARGIN_POINTS + column * (width + _GUTTER_POINTS),
            width=width,
            font="tiro",
            size=size,
        )
    press.block("308", 790, left=A4_POINTS[0] / 2 - 10, size=9)
    return press.sheet(dpi)


def table(*, ruled: bool) -> Sheet:
    """A table between two paragraphs."""
    press = Press()
    top = press.column(texts.ENGLISH[:1], MARGIN_POINTS)
    top = press.table(texts.TABLE, top + 10, ruled=ruled)
    press.column(texts.ENGLISH[3:4], top)
    return press.sheet()


def chapter() -> Sheet:
    """Headings of three sizes, two lists, paragraphs."""
    press = Press()
    top = press.block("The house rules", MARGIN_POINTS, font="hebo", size=22)
    top = press.column(texts.ENGLISH[1:2], top)
    top = press.block("For the evening", top + 6, font="hebo", size=17)
    top = press.items(texts.LIST, top, marker="•")
    top = press.block("In this order", top + 6, font="hebo", size=14)
    top = press.items(texts.LIST, top, marker="{number}.")
    press.column(texts.ENGLISH[2:3], top)
    return press.sheet()
