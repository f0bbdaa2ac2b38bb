"""Columns: the page cut into regions that are read one after the other, each from top to bottom."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from app.replicas.cpu.engine import Line

_MIN_ROWS = 4
"""Rows that make a column, on each side of a gutter."""
_MIN_CHARACTERS = 20
"""Median length of a column's lines, about 3.5 words; what is narrower is a table. Wide characters count twice."""
_FIRST_WIDE_CHARACTER = "\u2e80"
_OVERHANG = 0.3
"""How far a line may reach into a gutter and not cross it. This and the following in median line heights."""
_RUNNING_HEAD_GAP = 1.2
"""White between a running head or foot and the columns; a heading stands closer to its text."""

Lines = Sequence[Line]


def regions_of(lines: Lines) -> list[list[Line]]:
    """The lines in regions, in reading order; no line is lost.

    A recursive XY cut: the best gutter parts its bands, above and below which lines cross it (titles, running heads),
    into a left and a right side; each part is cut again.
    """
    height = median(line.height for line in lines) if lines else 0.0
    return list(_cut(sorted(lines, key=lambda line: line.centre), height))


def _cut(lines: Lines, height: float) -> Iterator[list[Line]]:
    gutter = max((_Gutter.at(x, lines, height) for x in _candidates(lines, height)), key=_Gutter.size, default=None)
    if gutter is None or not gutter.size():
        if lines:
            yield list(lines)
        return
    for part in gutter.parts():
        yield from _cut(part, height)


def _candidates(lines: Lines, height: float) -> list[float]:
    """Where a column may begin: left edges that several lines share."""
    step = max(1.0, height)
    begin: dict[int, list[float]] = defaultdict(list)
    for line in lines:
        begin[int(line.box.left / step)].append(line.box.left)
    # The lines of a column may fall into two neighbouring steps.
    return [min(lefts) for lefts in begin.values() if len(lefts) >= _MIN_ROWS / 2]


@dataclass(frozen=True)
class _Band:
    """Lines between two lines that cross the gutter, or one line that does."""

    lines: Lines
    left: Lines = ()
    right: Lines = ()

    @property
    def has_columns(self) -> bool:
        return _is_column(self.left) and _is_column(self.right)


@dataclass(frozen=True)
class _Gutter:
    bands: Sequence[_Band]
    height: float

    @classmethod
    def at(cls, x: float, lines: Lines, height: float) -> "_Gutter":
        """A vertical cut at `x` through lines that are sorted from top to bottom."""
        overhang = _OVERHANG * height
        bands: list[_Band] = []
        between: list[Line] = []
        for line in lines:
            if line.box.left < x - overhang and line.box.right > x + overhang:
                bands += [_band(between, x), _Band([line])]
                between = []
            else:
                between.append(line)
        return cls([*bands, _band(between, x)], height)

    def size(self) -> int:
        """Lines that it puts into columns."""
        return sum(len(band.lines) for band in self.bands if band.has_columns)

    def parts(self) -> Iterator[list[Line]]:
        """From top to bottom: lines over the whole width, then left and right columns, and so on."""
        across: list[Line] = []
        for band in self.bands:
            if not band.has_columns:
                across += band.lines
                continue
            head, foot = _running_head(band.lines, self.height), _running_foot(band.lines, self.height)
            apart = {id(line) for line in (*head, *foot)}
            yield across + head
            yield [line for line in band.left if id(line) not in apart]
            yield [line for line in band.right if id(line) not in apart]
            across = foot
        yield across


def _band(lines: Lines, x: float) -> _Band:
    left = [line for line in lines if (line.box.left + line.box.right) / 2 < x]
    right = [line for line in lines if (line.box.left + line.box.right) / 2 >= x]
    return _Band(lines, left, right)


def _is_column(lines: Lines) -> bool:
    return len(lines) >= _MIN_ROWS and median(map(_length, lines)) >= _MIN_CHARACTERS


def _length(line: Line) -> int:
    return sum(2 if character >= _FIRST_WIDE_CHARACTER else 1 for character in line.text)


def _running_head(lines: Lines, height: float) -> list[Line]:
    """The first row, if white parts it from the columns on both sides of the gutter."""
    row = [line for line in lines if line.box.top < lines[0].box.bottom - height / 2]
    rest = [line.box.top for line in lines[len(row) :]]
    return row if rest and min(rest) - max(line.box.bottom for line in row) > _RUNNING_HEAD_GAP * height else []


def _running_foot(lines: Lines, height: float) -> list[Line]:
    row = [line for line in lines if line.box.bottom > lines[-1].box.top + height / 2]
    rest = [line.box.bottom for line in lines[: -len(row)]]
    return row if rest and min(line.box.top for line in row) - max(rest) > _RUNNING_HEAD_GAP * height else []
