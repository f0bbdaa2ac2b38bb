"""Tables: rows whose boxes stand below each other, ruled or not."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.replicas.cpu.markers import is_marker
from app.replicas.cpu.rows import Row

_MIN_ROWS = 3
"""Rows of several cells; fewer may stand below each other by accident."""
_MIN_COLUMNS = 2
_GUTTER = 0.3
"""White between two columns, on all rows of the table. This and the following in row heights."""
_WORD_GAP = 0.6
"""Boxes closer than that are one cell: the engine cut a row between two words."""
_MAX_GAP = 1.5
"""White between two rows."""
_BRIDGED = 1.5
"""Where there were more than so many times the columns that would be left, or the row has more cells, it is none of the
table: a head over groups of columns, a sentence."""

Span = tuple[float, float]
"""Left and right edge."""


@dataclass(frozen=True, slots=True)
class Table:
    rows: Sequence[Row]
    columns: Sequence[Span]

    def markdown(self) -> str:
        """A pipe table, its first row as the head."""
        head, *body = ([_escaped(text) for text in self._cells(row)] for row in self.rows)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body))

    def _cells(self, row: Row) -> list[str]:
        cells: list[list[str]] = [[] for _ in self.columns]
        for line in row.lines:
            centre = (line.box.left + line.box.right) / 2
            cells[sum(centre > right for _, right in self.columns[:-1])].append(line.text.strip())
        return [" ".join(texts) for texts in cells]


def split_tables(rows: Sequence[Row]) -> list[Table | list[Row]]:
    """The rows in order, those of tables apart."""
    parts: list[Table | list[Row]] = []
    index = 0
    while index < len(rows):
        table = _table_at(rows, index)
        if table is not None:
            parts.append(table)
            index += len(table.rows)
            continue
        if parts and isinstance(parts[-1], list):
            parts[-1].append(rows[index])
        else:
            parts.append([rows[index]])
        index += 1
    return parts


def _table_at(rows: Sequence[Row], start: int) -> Table | None:
    """The longest table that begins with this row."""
    columns: list[Span] = []
    table = Table((), ())
    full = 0
    for index, row in enumerate(rows[start:]):
        cells = _cells_of(row)
        merged = _merged([*columns, *cells], _GUTTER * row.height)
        if len(merged) < _MIN_COLUMNS or max(len(columns), len(cells)) > _BRIDGED * len(merged):
            break
        if index and row.top - rows[start + index - 1].bottom > _MAX_GAP * row.height:
            break
        columns = merged
        if len(cells) >= _MIN_COLUMNS:
            table = Table(rows[start : start + index + 1], columns)
            full += 1
    is_list = all(is_marker(row.lines[0].text) for row in table.rows)
    return table if full >= _MIN_ROWS and not is_list else None


def _cells_of(row: Row) -> list[Span]:
    return _merged([(line.box.left, line.box.right) for line in row.lines], _WORD_GAP * row.height)


def _merged(spans: Sequence[Span], gap: float) -> list[Span]:
    """The spans from left to right, those that overlap or are closer than `gap` as one."""
    first, *others = sorted(spans)
    merged = [first]
    for left, right in others:
        last_left, last_right = merged[-1]
        if left - last_right < gap:
            merged[-1] = (last_left, max(last_right, right))
        else:
            merged.append((left, right))
    return merged


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
