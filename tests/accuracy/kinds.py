"""The kinds of pages, and how many of a hundred characters may be wrong on each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from PIL import Image

from tests.accuracy import damage, texts
from tests.accuracy.sheets import SCAN_DPI, Sheet, chapter, columns, prose, table

_MAIL_DPI = 150
_CLEAN_PERCENT = 0.2
_TURNED_PERCENT = 0.5


@dataclass(frozen=True)
class Kind:
    name: str
    max_error_percent: float
    """What is promised; where nothing is, twice what was measured, and at least one character."""
    sheets: Callable[[], Sequence[Sheet]]


def kinds() -> Iterator[Kind]:
    yield from _clean()
    yield from _layouts()
    yield from _damaged()
    yield from _turned()


def _clean() -> Iterator[Kind]:
    yield Kind(
        "clean", _CLEAN_PERCENT, lambda: [*_prints(SCAN_DPI), prose(texts.NUMBERS), prose(texts.ENGLISH, size=8)]
    )
    yield Kind("72 DPI", 0.9, partial(_prints, 72))
    for dpi in (100, 150, 300):
        yield Kind(f"{dpi} DPI", _CLEAN_PERCENT, partial(_prints, dpi))
    yield Kind("mono", _CLEAN_PERCENT, lambda: [prose(texts.ENGLISH[:5], font="cour", size=10)])
    yield Kind("German", _CLEAN_PERCENT, lambda: [prose(texts.GERMAN)])
    yield Kind("French", _CLEAN_PERCENT, lambda: [prose(texts.FRENCH, font="tiro")])
    yield Kind("Chinese", 0.4, lambda: [prose(texts.CHINESE, font="china-s", size=12)])


def _layouts() -> Iterator[Kind]:
    yield Kind("two columns", _CLEAN_PERCENT, lambda: [columns(2, size=10)])
    yield Kind("three columns", _CLEAN_PERCENT, lambda: [columns(3, size=9)])
    yield Kind("ruled table", _CLEAN_PERCENT, lambda: [table(ruled=True)])
    yield Kind("plain table", _CLEAN_PERCENT, lambda: [table(ruled=False)])
    yield Kind("headings, lists", _CLEAN_PERCENT, lambda: [chapter()])


def _damaged() -> Iterator[Kind]:
    yield _changed("JPEG 40", _CLEAN_PERCENT, _MAIL_DPI, lambda image: damage.jpeg(image, 40))
    yield _changed("noise", 0.45, _MAIL_DPI, lambda image: damage.noise(image, 35))
    yield _changed("bad scan", 1.4, _MAIL_DPI, damage.scan)


def _turned() -> Iterator[Kind]:
    for degrees in (1, -2, 3):
        yield _changed(f"skewed {degrees}", _TURNED_PERCENT, SCAN_DPI, partial(damage.skew, degrees=degrees))
    for degrees in (90, 180, 270):
        yield _changed(f"rotated {degrees}", _TURNED_PERCENT, SCAN_DPI, partial(damage.quarter_turns, degrees=degrees))
    yield _changed(
        "rotated, skewed", _TURNED_PERCENT, SCAN_DPI, lambda image: damage.quarter_turns(damage.skew(image, 2), 90)
    )


def _prints(dpi: int) -> list[Sheet]:
    return [prose(texts.ENGLISH, dpi=dpi), prose(texts.ENGLISH, font="tiro", size=10, dpi=dpi)]


def _changed(name: str, max_error_percent: float, dpi: int, change: Callable[[Image.Image], Image.Image]) -> Kind:
    """A page of prose and one of two columns, changed."""

    def sheets() -> list[Sheet]:
        pages = (prose(texts.ENGLISH[:4], font="tiro", size=10, dpi=dpi), columns(2, size=10, dpi=dpi))
        return [replace(page, image=change(page.image)) for page in pages]

    return Kind(name, max_error_percent, sheets)
