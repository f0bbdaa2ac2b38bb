"""Page ranges as users write them: `1-5,8,r3-r1` (rN counts from the end)."""

import re
import sys
from itertools import chain

from app.errors import PageRangeInvalid, TooManyPages

_PART = re.compile(r"(r?\d{1,9})(?:-(r?\d{1,9}))?", re.ASCII)
LAST_PAGE_NUMBER = 2**31 - 1
"""Largest that the journal can hold, or can be asked for."""
ALL_PAGES = "1-r1"


def parse_page_range(text: str, total: int, max_pages: int = sys.maxsize) -> tuple[int, ...]:
    """Page numbers from 1, ascending and without duplicates, that `text` names in a file of `total` pages.

    Numbers past the end of the file are ignored as long as one page is left; raises `PageRangeInvalid`, and
    `TooManyPages` before it has made more than `max_pages` numbers: a small file can claim a billion pages.
    """
    ranges = _disjoint([_part(part, total) for part in text.replace(" ", "").split(",")])
    count = sum(map(len, ranges))
    if count == 0:
        raise PageRangeInvalid(f"{text!r} names no page of this file, which has {total}")
    if count > max_pages:
        raise TooManyPages(f"{count} pages; a document may have {max_pages} at most", limit=max_pages)
    return tuple(chain.from_iterable(ranges))


def _part(part: str, total: int) -> range:
    match = _PART.fullmatch(part)
    if match is None:
        raise PageRangeInvalid(f"{part!r} is no page and no range; write for example 1-5,8,r3-r1")
    first = _number(match[1], total)
    last = _number(match[2] or match[1], total)
    if first > last:
        raise PageRangeInvalid(f"the range {part!r} runs backwards")
    return range(max(first, 1), min(last, total) + 1)


def _disjoint(ranges: list[range]) -> list[range]:
    """The same numbers, ascending, each in one range only."""
    disjoint: list[range] = []
    end = 0
    for numbers in sorted(ranges, key=lambda numbers: numbers.start):
        disjoint.append(range(max(numbers.start, end), numbers.stop))
        end = max(end, numbers.stop)
    return disjoint


def _number(text: str, total: int) -> int:
    number = int(text.removeprefix("r"))
    if number == 0:
        raise PageRangeInvalid("pages count from 1")
    return total + 1 - number if text.startswith("r") else number
