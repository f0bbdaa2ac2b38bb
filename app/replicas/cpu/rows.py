"""Rows of print, put together from the boxes that an engine found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.replicas.cpu.engine import Line
from app.replicas.cpu.markers import is_marker

_SAME_ROW = 0.5
"""Boxes are on one row when their centres differ by less than this share of the lower box's height."""
_CELL_GAP = 2.0
"""A gap of this many line heights parts cells."""
_CELL_SEPARATOR = "    "


@dataclass(frozen=True)
class Row:
    """Boxes that stand side by side, from left to right."""

    cells: tuple[tuple[Line, ...], ...]
    """Boxes grouped by wide gaps: one group on a row of prose, several on a row of a table."""

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for cell in self.cells for line in cell)

    @cached_property
    def text(self) -> str:
        return _CELL_SEPARATOR.join(" ".join(line.text.strip() for line in cell) for cell in self.cells)

    @cached_property
    def left(self) -> float:
        return min(line.box.left for line in self.lines)

    @cached_property
    def right(self) -> float:
        return max(line.box.right for line in self.lines)

    @cached_property
    def top(self) -> float:
        return min(line.box.top for line in self.lines)

    @cached_property
    def bottom(self) -> float:
        return max(line.box.bottom for line in self.lines)

    @cached_property
    def centre(self) -> float:
        return _centre(self.lines)

    @cached_property
    def height(self) -> float:
        """Typical height of its boxes: they weigh by their text."""
        return sum(line.height * len(line.text) for line in self.lines) / self._characters

    @cached_property
    def character_width(self) -> float:
        """Typical width of its characters."""
        return sum(line.width for line in self.lines) / self._characters

    @cached_property
    def _characters(self) -> int:
        return sum(len(line.text) for line in self.lines)

    @property
    def is_prose(self) -> bool:
        return len(self.cells) == 1


def rows_of(lines: Iterable[Line]) -> list[Row]:
    """Rows from top to bottom; boxes without text are left out."""
    rows: list[list[Line]] = []
    for line in sorted((line for line in lines if line.text.strip()), key=lambda line: line.centre):
        if rows and _on_row(line, rows[-1]):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [Row(_cells(row)) for row in rows]


def _on_row(line: Line, row: Sequence[Line]) -> bool:
    lowest = min(line.height, *(other.height for other in row))
    return abs(line.centre - _centre(row)) < _SAME_ROW * lowest


def _centre(row: Sequence[Line]) -> float:
    return sum(line.centre for line in row) / len(row)


def _cells(row: Iterable[Line]) -> tuple[tuple[Line, ...], ...]:
    """A marker at the beginning belongs to the text after it, however far that stands."""
    first, *others = sorted(row, key=lambda line: line.box.left)
    cells = [[first]]
    for line in others:
        apart = line.box.left - cells[-1][-1].box.right >= _CELL_GAP * line.height
        if apart and not (cells == [[first]] and is_marker(first.text)):
            cells.append([line])
        else:
            cells[-1].append(line)
    return tuple(map(tuple, cells))
