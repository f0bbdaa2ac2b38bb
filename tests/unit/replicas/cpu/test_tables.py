from collections.abc import Sequence

import pytest

from app.replicas.cpu.engine import Line
from app.replicas.cpu.rows import rows_of
from app.replicas.cpu.tables import Table, split_tables
from tests.unit.replicas.cpu.lines import CHARACTER_WIDTH, PITCH, line

LEFTS = (100, 500, 800)


def grid(*rows: Sequence[str], lefts: Sequence[float] = LEFTS, top: float = 100, right_aligned: int = 0) -> list[Line]:
    """Cells in columns; the last `right_aligned` columns end, rather than begin, below each other. Empty: no box."""
    lines = []
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            shift = 10 - len(text) if column >= len(row) - right_aligned else 0
            if text:
                lines.append(line(text, lefts[column] + shift * CHARACTER_WIDTH, top + number * PITCH))
    return lines


def parts(*lines: Line) -> list[str]:
    """Tables as Markdown, other rows as their text."""
    split: list[str] = []
    for part in split_tables(rows_of(lines)):
        split += [part.markdown()] if isinstance(part, Table) else [row.text for row in part]
    return split


def pipes(*rows: Sequence[str]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, f"| {' | '.join(['---'] * len(rows[0]))} |", *body])


CELLS = (["Room", "Seats", "Books"], ["Reading room", "64", "8,412"], ["Map collection", "12", "1,907"])


@pytest.mark.parametrize("right_aligned", [0, 1, 2])
def test_three_rows_of_aligned_cells_are_a_table(right_aligned: int) -> None:
    assert parts(*grid(*CELLS, right_aligned=right_aligned)) == [pipes(*CELLS)]


def test_two_rows_are_no_table() -> None:
    assert parts(*grid(*CELLS[:2])) == ["Room    Seats    Books", "Reading room    64    8,412"]


def test_prose_around_a_table_stays_prose() -> None:
    above, below = line("A sentence above that is wider than a column", 100, 60), line("Below it", 100, 230)
    assert parts(above, *grid(*CELLS), below) == [above.text, pipes(*CELLS), below.text]


def test_a_cell_that_is_missing_is_empty() -> None:
    rows = (*CELLS, ["Workshop", "", "641"], ["", "7", "2,385"])
    assert parts(*grid(*rows)) == [pipes(*rows)]


def test_a_row_with_one_cell_inside_a_table_belongs_to_it() -> None:
    rows = (*CELLS, ["Workshop", "", ""], *CELLS[1:])
    assert parts(*grid(*rows)) == [pipes(*rows)]


def test_a_line_below_a_table_makes_no_column_of_its_own() -> None:
    below = line("See overleaf", 1100, 100 + 3 * PITCH)
    assert parts(*grid(*CELLS), below) == [pipes(*CELLS), "See overleaf"]


def test_a_table_ends_at_a_wide_gap() -> None:
    assert parts(*grid(*CELLS), *grid(*CELLS, top=400)) == [pipes(*CELLS)] * 2


def test_pipes_in_cells_are_escaped() -> None:
    assert "| a\\|b |" in parts(*grid(["Room", "a|b"], *CELLS))[0]


def test_a_cell_that_the_engine_cut_between_two_words_is_one() -> None:
    lines = [*grid(*CELLS, ["Music", "7", "2,385"]), line("archive", 100 + 5.5 * CHARACTER_WIDTH, 100 + 3 * PITCH)]
    assert parts(*lines) == [pipes(*CELLS, ["Music archive", "7", "2,385"])]


def test_a_sentence_in_two_boxes_below_a_table_is_none_of_it() -> None:
    sentence = [line("The numbers of the seats above do", 100, 220), line("not count all the benches", 560, 220)]
    assert parts(*grid(*CELLS), *sentence) == [
        pipes(*CELLS),
        "The numbers of the seats above do not count all the benches",
    ]


def test_a_head_over_groups_of_columns_stands_before_the_table() -> None:
    lefts = (100, 400, 600, 800)
    head = [line("Morning till the noon bell", 100, 60), line("Afternoon till six", 600, 60)]
    rows = [["7.5", "9.1", "14.3", "23.4"]] * 3
    assert parts(*head, *grid(*rows, lefts=lefts)) == ["Morning till the noon bell    Afternoon till six", pipes(*rows)]


@pytest.mark.parametrize("markers", [("•", "•", "•"), ("1.", "2.", "3."), ("a)", "b)", "c)"), ("–", "–", "–")])
def test_a_list_with_its_markers_apart_is_no_table(markers: Sequence[str]) -> None:
    rows = [[marker, "Return the key"] for marker in markers]
    assert parts(*grid(*rows, lefts=(100, 200))) == [f"{marker} Return the key" for marker in markers]
