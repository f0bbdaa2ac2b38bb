import random
from collections.abc import Sequence

import pytest

from app.replicas.cpu.columns import regions_of
from app.replicas.cpu.engine import Box, Line
from app.replicas.cpu.rows import rows_of
from tests.unit.replicas.cpu.lines import PITCH, column, line

LEFT, RIGHT, FAR_RIGHT = 100, 600, 1100
ROWS = 8


def prose(name: str, rows: int = ROWS) -> list[str]:
    return [f"{name}{number} and some thirty letters" for number in range(rows)]


def order(lines: Sequence[Line]) -> list[str]:
    """First words of the lines, region by region and row by row."""
    shuffled = random.Random(5).sample(lines, len(lines))
    rows = [row for region in regions_of(shuffled) for row in rows_of(region)]
    return [line.text.split()[0] for row in rows for line in row.lines]


def names(name: str, rows: int = ROWS) -> list[str]:
    return [f"{name}{number}" for number in range(rows)]


def test_a_page_without_lines_has_no_regions() -> None:
    assert regions_of([]) == []


def test_one_column_is_one_region() -> None:
    assert len(regions_of(column(prose("a"), LEFT, 100))) == 1


def test_the_left_column_is_read_before_the_right_one() -> None:
    lines = column(prose("a"), LEFT, 100) + column(prose("b"), RIGHT, 100)
    assert order(lines) == names("a") + names("b")


def test_columns_of_different_pitch_and_length_are_parted_too() -> None:
    lines = column(prose("a"), LEFT, 100) + column(prose("b", 5), RIGHT, 117, pitch=52)
    assert order(lines) == names("a") + names("b", 5)


def test_three_columns_are_read_from_left_to_right() -> None:
    lines = column(prose("a"), LEFT, 100) + column(prose("b"), RIGHT, 100) + column(prose("c"), FAR_RIGHT, 100)
    assert order(lines) == names("a") + names("b") + names("c")


def test_a_title_over_both_columns_comes_first() -> None:
    title = line("Title over the whole width of both columns", 200, 20, size=1.5)
    lines = [title, *column(prose("a"), LEFT, 100), *column(prose("b"), RIGHT, 100)]
    assert order(lines) == ["Title", *names("a"), *names("b")]


def test_a_line_across_the_page_parts_what_is_above_it_from_what_is_below() -> None:
    across = line("Across the whole width of the page in the middle of it", LEFT, 100 + ROWS * PITCH)
    below = 100 + (ROWS + 1) * PITCH
    lines = [
        *(column(prose("a"), LEFT, 100) + column(prose("b"), RIGHT, 100)),
        across,
        *(column(prose("c"), LEFT, below) + column(prose("d"), RIGHT, below)),
    ]
    assert order(lines) == names("a") + names("b") + ["Across"] + names("c") + names("d")


def test_one_column_under_two_is_read_after_them() -> None:
    wide = [f"w{number} is a line as wide as the page, and so it crosses the gutter" for number in range(3)]
    lines = [
        *column(prose("a"), LEFT, 100),
        *column(prose("b"), RIGHT, 100),
        *column(wide, LEFT, 100 + ROWS * PITCH),
    ]
    assert order(lines) == names("a") + names("b") + names("w", 3)


def test_running_heads_and_feet_stay_in_their_places() -> None:
    last = 100 + (ROWS + 2) * PITCH
    lines = [
        *(line("Journal of Quays", LEFT, 20), line("Page-308 of 400", RIGHT + 100, 20)),
        *(column(prose("a"), LEFT, 120) + column(prose("b"), RIGHT, 120)),
        *(line("Copyright 1874", LEFT, last), line("vol-6", RIGHT + 200, last)),
    ]
    assert order(lines) == ["Journal", "Page-308", *names("a"), *names("b"), "Copyright", "vol-6"]


def test_a_heading_on_top_of_a_column_belongs_to_it() -> None:
    lines = [
        *(line("Above a", LEFT, 100), *column(prose("a"), LEFT, 100 + 1.5 * PITCH)),
        *column(prose("b", ROWS + 1), RIGHT, 100),
    ]
    assert order(lines) == ["Above", *names("a"), *names("b", ROWS + 1)]


@pytest.mark.parametrize("cell", ["12.50", "Reading room 4"])
def test_the_short_cells_of_a_table_are_no_columns(cell: str) -> None:
    lines = column([cell] * ROWS, LEFT, 100) + column(prose("b"), RIGHT, 100)
    assert len(regions_of(lines)) == 1


def test_three_rows_side_by_side_are_no_columns() -> None:
    assert len(regions_of(column(prose("a", 3), LEFT, 100) + column(prose("b", 3), RIGHT, 100))) == 1


def test_columns_of_chinese_are_narrow_in_characters() -> None:
    lines = column(["港口图书馆坐落在旧码头的"] * ROWS, LEFT, 100) + column(
        ["尽头位于制绳厂与海关大楼"] * ROWS, RIGHT, 100
    )
    assert len(regions_of(lines)) == 2


def test_no_line_is_lost_or_doubled_on_any_page() -> None:
    dice = random.Random(11)
    for _ in range(100):
        lines = []
        for number in range(40):
            left, top = dice.uniform(0, 900), dice.uniform(0, 900)
            lines.append(
                Line(f"{number} " + "x" * dice.randint(0, 40), Box(left, top, left + dice.uniform(0, 500), top + 20), 1)
            )
        assert sorted(order(lines), key=int) == [str(number) for number in range(40)]
