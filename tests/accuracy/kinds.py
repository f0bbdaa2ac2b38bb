"""The kinds of pages, and how many of a hundred characters may be wrong on each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from PIL import Image

from tests.accuracy import damage, texts
from tests.accuracy.sheets import SCAN_DPI, Sheet, chapter, columns, prose, table

_MAIL_DPI = 150


@dataclass(frozen=True)
class Kind:
    name: str
    max_error_percent: float
    sheets: Callable[[], Sequence[Sheet]]


def kinds() -> Iterator[Kind]:
    yield from _clean()
    yield from _layouts()
    yield from _damaged()
    yield from _turned()


def _clean() -> Iterator[Kind]:
    yield Kind("clean", 0.2, lambda: [*_prints(SCAN_DPI), prose(texts.NUMBERS), prose(texts.ENGLISH, size=8)])
    for dpi in (72, 100, 150, 300):
        yield Kind(f"{dpi} DPI", 0.2, partial(_prints, dpi))
    yield Kind("mono", 0.2, lambda: [prose(texts.ENGLISH[:5], font="cour", size=10)])
    yield Kind("German", 0.2, lambda: [prose(texts.GERMAN)])
    yield Kind("French", 0.2, lambda: [prose(texts.FRENCH, font="tiro")])
    yield Kind("Chinese", 0.2, lambda: [prose(texts.CHINESE, font="china-s", size=12)])


def _layouts() -> Iterator[Kind]:
    yield Kind("two columns", 0.2, lambda: [columns(2, size=10)])
    yield Kind("three columns", 0.2, lambda: [columns(3, size=9)])
    yield Kind("ruled table", 0.2, lambda: [table(ruled=True)])
    yield Kind("plain table", 0.2, lambda: [table(ruled=False)])
    yield Kind("headings, lists", 0.2, lambda: [chapter()])


def _damaged() -> Iterator[Kind]:
    yield _changed("JPEG 40", 0.2, _MAIL_DPI, lambda image: damage.jpeg(image, 40))
    yield _changed("noise", 0.2, _MAIL_DPI, lambda image: damage.noise(image, 35))
    yield _changed("bad scan", 0.2, _MAIL_DPI, damage.scan)


def _turned() -> Iterator[Kind]:
    for degrees in (1, -2, 3):
        yield _changed(f"skewed {degrees}", 0.5, SCAN_DPI, partial(damage.skew, degrees=degrees))
    for degrees in (90, 180, 270):
        yield _changed(f"rotated {degrees}", 0.5, SCAN_DPI, partial(damage.quarter_turns, degrees=degrees))
    yield _changed("rotated, skewed", 0.5, SCAN_DPI, lambda image: damage.quarter_turns(damage.skew(image, 2), 90))


def _prints(dpi: int) -> list[Sheet]:
    return [prose(texts.ENGLISH, dpi=dpi), prose(texts.ENGLISH, font="tiro", size=10, dpi=dpi)]


def _changed(name: str, max_error_percent: float, dpi: int, change: Callable[[Image.Image], Image.Image]) -> Kind:
    """Prose and a page of two columns, changed."""

    def sheets() -> list[Sheet]:
        return [
            replace(sheet, image=change(sheet.image))
            for sheet in (prose(texts.ENGLISH[:4], font="tiro", size=10, dpi=dpi), columns(2, size=10, dpi=dpi))
        ]

    return Kind(name, max_error_percent, sheets)
