import random

from app.replicas.cpu.engine import Box, Line
from app.replicas.cpu.rows import rows_of


def line(text: str, left: float, top: float, *, width: float = 100, height: float = 30) -> Line:
    return Line(text, Box(left, top, left + width, top + height), 0.9)


def texts(*lines: Line) -> list[str]:
    return [row.text for row in rows_of(lines)]


def test_boxes_side_by_side_are_one_row_from_left_to_right() -> None:
    assert texts(line("world", 130, 104), line("Hello", 20, 100)) == ["Hello world"]


def test_boxes_half_a_height_apart_are_two_rows() -> None:
    assert texts(line("below", 130, 116), line("above", 20, 100)) == ["above", "below"]


def test_a_small_box_beside_a_tall_one_joins_only_at_its_own_height() -> None:
    assert texts(line("T", 0, 100, height=90), line("middle", 120, 132), line("upper", 120, 104)) == [
        "upper",
        "T middle",
    ]


def test_a_wide_gap_parts_cells() -> None:
    [row] = rows_of([line("Name", 20, 100), line("Amount", 400, 100), line("due", 510, 100)])
    assert row.text == "Name    Amount due"
    assert not row.is_prose


def test_boxes_without_text_are_left_out() -> None:
    assert texts(line("  ", 20, 100), line("text", 200, 100)) == ["text"]


def test_no_character_is_lost_whatever_the_boxes() -> None:
    dice = random.Random(7)
    lines = [
        line(
            f"w{n}", dice.uniform(0, 900), dice.uniform(0, 900), height=dice.uniform(0, 80), width=dice.uniform(0, 200)
        )
        for n in range(300)
    ]
    found = " ".join(texts(*lines)).split()
    assert sorted(found) == sorted(line.text for line in lines)
