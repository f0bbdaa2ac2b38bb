"""From the lines that an engine found to Markdown: rows, headings by size, paragraphs. One column, upright."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from app.documents.text import clean_text
from app.replicas.cpu.engine import Line
from app.replicas.cpu.paragraphs import join, paragraphs_of
from app.replicas.cpu.rows import Row, rows_of

_HEADING_SIZE = 1.2
"""Times the page's median line height; the boxes of one size differ by up to 15 %."""
_TITLE_SIZE = 1.5
_MAX_HEADING_ROWS = 3
_MAX_HEADING_CHARACTERS = 200
_MIN_HEADING_LETTERS = 3
_PARAGRAPH_GAP = 1.5
"""Times the page's pitch."""
_MAX_PITCH = 2.5
"""Line heights between two rows of one paragraph at most; double spacing is 2.2."""


def markdown(lines: Iterable[Line]) -> str:
    """The page's text; blocks are parted by an empty line. No character of the lines is lost except line-end hyphens.

    Line boxes are in pixels of one upright page.
    """
    rows = rows_of(lines)
    if not rows:
        return ""
    size = _typical_height(rows)
    return clean_text("\n\n".join(text for block in _blocks(rows, size) for text in _texts(block, size)))


def _typical_height(rows: Sequence[Row]) -> float:
    """Median line height over characters, so that a few headings or numbers do not move it; at least a pixel."""
    return max(1.0, median(line.height for row in rows for line in row.lines for _ in line.text))


def _blocks(rows: Sequence[Row], size: float) -> list[list[Row]]:
    """Rows that follow each other at the page's pitch and in one size; a row of several cells stands alone."""
    gap = _PARAGRAPH_GAP * _pitch(rows, size)
    blocks = [[rows[0]]]
    for previous, row in pairwise(rows):
        joined = (
            previous.is_prose
            and row.is_prose
            and row.centre - previous.centre <= gap * max(row.height / size, 1.0)
            and _level(previous, size) == _level(row, size)
        )
        if joined:
            blocks[-1].append(row)
        else:
            blocks.append([row])
    return blocks


def _pitch(rows: Sequence[Row], size: float) -> float:
    distances = [below.centre - above.centre for above, below in pairwise(rows)]
    return min(median(distances or [size]), _MAX_PITCH * size)


def _level(row: Row, size: float) -> int:
    """Heading level that the row's size asks for; 0 is body text."""
    if not row.is_prose or sum(map(str.isalpha, row.text)) < _MIN_HEADING_LETTERS:
        return 0
    if row.height > _TITLE_SIZE * size:
        return 1
    return 2 if row.height > _HEADING_SIZE * size else 0


def _texts(block: Sequence[Row], size: float) -> list[str]:
    level = _level(block[0], size)
    if level and len(block) <= _MAX_HEADING_ROWS and sum(len(row.text) for row in block) <= _MAX_HEADING_CHARACTERS:
        return [f"{'#' * level} {join(block)}"]
    return [join(paragraph) for paragraph in paragraphs_of(block)]
