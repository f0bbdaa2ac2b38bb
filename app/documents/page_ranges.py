"""Page ranges as users write them: `1-5,8,r3-r1` (rN counts from the end)."""

import re

from app.errors import PageRangeInvalid

_PART = re.compile(r"(r?\d{1,9})(?:-(r?\d{1,9}))?")


def parse_page_range(text: str, total: int) -> tuple[int, ...]:
    """Page numbers from 1, ascending and without duplicates, that `text` names in a file of `total` pages.

    Numbers past the end of the file are ignored as long as one page is left; raises `PageRangeInvalid`.
    """
    pages: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise PageRangeInvalid(f"{part!r} is no page and no range; write for example 1-5,8,r3-r1")
        first = _number(match[1], total)
        last = _number(match[2] or match[1], total)
        if first > last:
            raise PageRangeInvalid(f"the range {part!r} runs backwards")
        pages.update(range(max(first, 1), min(last, total) + 1))
    if not pages:
        raise PageRangeInvalid(f"{text!r} names no page of this file, which has {total}")
    return tuple(sorted(pages))


def _number(text: str, total: int) -> int:
    number = int(text.removeprefix("r"))
    if number == 0:
        raise PageRangeInvalid("pages count from 1")
    return total + 1 - number if text.startswith("r") else number
