import random

import pytest

from app.replicas.cpu.engine import Box, Line
from app.replicas.cpu.layout import markdown

BODY = "Every page is committed as it is finished, and it is streamed by id to anyone who asks,"


def page(*rows: tuple[str, float, float]) -> list[Line]:
    """Lines from (text, top, height); width follows from height and text."""
    return [Line(text, Box(100, top, 100 + 0.4 * height * len(text), top + height), 0.99) for text, top, height in rows]


def test_a_page_without_lines_is_empty_text() -> None:
    assert markdown([]) == ""
    assert markdown(page(("   ", 0, 30))) == ""


def test_large_short_rows_are_headings_by_their_size() -> None:
    assert markdown(
        page(
            ("The Walking Thread", 100, 63),
            (BODY, 240, 34),
            (BODY, 285, 34),
            ("A second heading", 400, 46),
            (BODY, 470, 34),
        )
    ).split("\n\n") == ["# The Walking Thread", f"{BODY} {BODY}", "## A second heading", BODY]


def test_a_heading_of_two_rows_is_one_heading() -> None:
    lines = page(("The Walking", 100, 60), ("Thread of Pages", 180, 60), (BODY, 300, 34), (BODY, 345, 34))
    assert markdown(lines).startswith("# The Walking Thread of Pages\n\nEvery")


@pytest.mark.parametrize("height", [31, 34, 40])
def test_the_noise_of_box_heights_makes_no_heading(height: float) -> None:
    assert "#" not in markdown(page((BODY, 100, 34), ("Methods", 190, height), (BODY, 280, 34)))


def test_a_box_that_is_tall_by_accident_is_no_heading() -> None:
    tall = Line("Methods and results", Box(100, 180, 100 + 19 * 13.6, 225), 0.99)
    assert "#" not in markdown([*page((BODY, 100, 34)), tall, *page((BODY, 280, 34))])


@pytest.mark.parametrize("text", ["1", "(7)", "12 %"])
def test_large_numbers_are_no_headings(text: str) -> None:
    assert "#" not in markdown(page((BODY, 100, 34), (text, 190, 70), (BODY, 300, 34)))


def test_a_page_of_large_print_has_no_headings() -> None:
    assert "#" not in markdown(page(*((BODY, 100 + 80 * n, 60) for n in range(9)), ("note", 900, 30)))


def test_a_long_passage_in_larger_print_is_no_heading() -> None:
    lines = page(*((BODY, 100 + 60 * n, 46) for n in range(4)), *((BODY, 500 + 45 * n, 34) for n in range(9)))
    assert "#" not in markdown(lines)


def test_a_gap_wider_than_the_pitch_parts_paragraphs() -> None:
    tops = (100, 145, 190, 262, 307, 352)
    assert markdown(page(*((BODY, top, 34) for top in tops))) == f"{BODY} {BODY} {BODY}\n\n{BODY} {BODY} {BODY}"


def test_double_spaced_rows_are_one_paragraph() -> None:
    assert markdown(page(*((BODY, 100 + 74 * n, 34) for n in range(4)))) == " ".join([BODY] * 4)


def test_rows_of_cells_stand_alone() -> None:
    cells = [Line(text, Box(left, 200, left + 90, 234), 0.9) for text, left in (("Name", 100), ("Amount", 600))]
    assert markdown([*page((BODY, 155, 34)), *cells, *page((BODY, 245, 34))]).split("\n\n") == [
        BODY,
        "Name    Amount",
        BODY,
    ]


def test_control_characters_are_removed() -> None:
    assert markdown(page(("a\x00b\x1b", 100, 34))) == "ab"


def test_no_character_is_lost_on_any_page() -> None:
    dice = random.Random(3)
    for _ in range(50):
        lines = page(*((f"word{n} Text", dice.uniform(0, 2000), dice.uniform(0, 90)) for n in range(60)))
        words = [word for word in markdown(lines).split() if set(word) != {"#"}]
        assert sorted(words) == sorted(word for line in lines for word in line.text.split())
