"""Where a stream was broken off: `seq` in completed order, `R.N` in page order (R retries so far, N last page sent)."""

import re
from dataclasses import dataclass
from enum import StrEnum

from app.errors import CursorInvalid


class Order(StrEnum):
    COMPLETED = "completed"
    PAGE = "page"


@dataclass(frozen=True, slots=True)
class PageCursor:
    retries: int
    page: int
    """0 before the first page; in the id of the `end` event one more than the last page."""

    def __str__(self) -> str:
        return f"{self.retries}.{self.page}"


def parse_seq(text: str) -> int:
    """Raises `CursorInvalid`, for a cursor of page order too."""
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise CursorInvalid(f"{text[:40]!r} is no cursor of completed order, which is a number")
    return int(text)


def parse_page_cursor(text: str) -> PageCursor:
    """Raises `CursorInvalid`, for a cursor of completed order too."""
    match = re.fullmatch(r"(\d{1,9})\.(\d{1,9})", text, re.ASCII)
    if match is None:
        raise CursorInvalid(f"{text[:40]!r} is no cursor of page order, which is of the form 0.12")
    return PageCursor(int(match[1]), int(match[2]))
