"""From the lines that an engine found to Markdown: rows, headings by size, paragraphs. One column, upright."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from app.documents.text import clean_text
from app.replicas.cpu.engine import Line
from app.replicas.cpu.paragraphs import join, paragraphs_of
from app.replicas.cpu.rows import Row, rows_of

_HEADING_SIZE = 1.2
"""Height of a heading's line in those of the body; boxes of one font size differ by 15 %, seldom by 30 %."""
_HEADING_WIDTH = 1.1
"""Width of a heading's characters in those of the body: a box that is tall by accident is not wide as well."""
_TITLE_SIZE = 1.5
_MAX_HEADING_ROWS = 3
_MAX_HEADING_CHARACTERS = 200
_MIN_HEADING_LETTERS = 3
_PARAGRAPH_GAP = 1.5
"""In pitches of the body."""
_MAX_PITCH = 2.5
"""In line heights of the body; double spacing is 2.2."""


def markdown(lines: Iterable[Line]) -> str:
    """The page's text; blocks are parted by an empty line. No character of the lines is lost except line-end hyphens.

    Line boxes are in pixels of one upright page.
    """
    rows = rows_of(lines)
    if not rows:
        return ""
    body = _Body.of(rows)
    return clean_text("\n\n".join(text for block in _blocks(rows, body) for text in _texts(block, body)))


@dataclass(frozen=True, slots=True)
class _Body:
    """Measures of the body text in pixels: medians over characters, so that headings and numbers do not move them."""

    height: float
    character_width: float
    pitch: float
    """From row to row."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "_Body":
        height = max(1.0, median(row.height for row in rows for _ in row.text))
        distances = [below.centre - above.centre for above, below in pairwise(rows)]
        return cls(
            height=height,
            character_width=median(row.character_width for row in rows for _ in row.text),
            pitch=min(median(distances or [height]), _MAX_PITCH * height),
        )

    def heading_level(self, row: Row) -> int:
        """Level that the row's size asks for; 0 is body text."""
        if not row.is_prose or sum(map(str.isalpha, row.text)) < _MIN_HEADING_LETTERS:
            return 0
        if row.height <= _HEADING_SIZE * self.height or row.character_width <= _HEADING_WIDTH * self.character_width:
            return 0
        return 1 if row.height > _TITLE_SIZE * self.height else 2


def _blocks(rows: Sequence[Row], body: _Body) -> list[list[Row]]:
    """Rows that follow each other at the page's pitch and in one size; a row of several cells stands alone."""
    blocks = [[rows[0]]]
    for previous, row in pairwise(rows):
        gap = _PARAGRAPH_GAP * body.pitch * max(row.height / body.height, 1.0)
        joined = (
            previous.is_prose
            and row.is_prose
            and row.centre - previous.centre <= gap
            and body.heading_level(previous) == body.heading_level(row)
        )
        if joined:
            blocks[-1].append(row)
        else:
            blocks.append([row])
    return blocks


def _texts(block: Sequence[Row], body: _Body) -> list[str]:
    level = body.heading_level(block[0])
    if level and len(block) <= _MAX_HEADING_ROWS and sum(len(row.text) for row in block) <= _MAX_HEADING_CHARACTERS:
        return [f"{'#' * level} {join(block)}"]
    return [join(paragraph) for paragraph in paragraphs_of(block)]
