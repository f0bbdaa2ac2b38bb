"""Pages that say which page they are: a code of 32 squares, black or white, that any drawing of the page keeps."""

import io
from collections.abc import Iterator
from typing import NamedTuple, Self

from PIL import Image

COLUMNS, ROWS = 8, 4
SQUARE_POINTS = 10
MARGIN_POINTS = 10
WIDTH_POINTS = COLUMNS * SQUARE_POINTS + 2 * MARGIN_POINTS
HEIGHT_POINTS = ROWS * SQUARE_POINTS + 2 * MARGIN_POINTS
MAX_PAGE = 2**10 - 1
_BLACK_BELOW = 128


class PageCode(NamedTuple):
    document: int
    """From 1 to 2**21 - 1."""
    page: int
    """From 1 to `MAX_PAGE`."""
    hard: bool = False
    """Whether replicas often give up on the page."""

    def __str__(self) -> str:
        return f"document {self.document}, page {self.page}"

    def squares(self) -> Iterator[tuple[int, int]]:
        """Column and row of each black square."""
        number = self.document << 11 | self.page << 1 | self.hard
        return (divmod(bit, ROWS) for bit in range(COLUMNS * ROWS) if number >> bit & 1)

    @classmethod
    def read(cls, image: bytes) -> Self:
        """The code on the image of a page."""
        page = Image.open(io.BytesIO(image)).convert("L")
        number = sum(_is_black(page, *divmod(bit, ROWS)) << bit for bit in range(COLUMNS * ROWS))
        return cls(number >> 11, number >> 1 & MAX_PAGE, bool(number & 1))


def _is_black(page: Image.Image, column: int, row: int) -> bool:
    x = page.width * (MARGIN_POINTS + (column + 0.5) * SQUARE_POINTS) / WIDTH_POINTS
    y = page.height * (MARGIN_POINTS + (row + 0.5) * SQUARE_POINTS) / HEIGHT_POINTS
    level = page.getpixel((int(x), int(y)))
    assert isinstance(level, int)
    return level < _BLACK_BELOW
