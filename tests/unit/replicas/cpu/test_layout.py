import random

import pytest

from app.replicas.cpu.engine import Box, Line
from app.replicas.cpu.layout import markdown
from tests.unit.replicas.cpu.lines import column

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


@pytest.mark.parametrize(
    ("height", "signs"), [(75, "# "), (60, "# "), (50, "## "), (46, "## "), (43, "### "), (37, "")]
)
def test_levels_of_headings_follow_their_size(height: float, signs: str) -> None:
    assert markdown(page(("Methods and results", 100, height), (BODY, 240, 34), (BODY, 285, 34))).startswith(
        f"{signs}Methods"
    )


def test_a_row_of_wide_spaces_inside_a_paragraph_is_no_heading() -> None:
    stretched = Line("paper, flattened under marble", Box(100, 145, 100 + 29 * 17, 185), 0.99)
    assert "#" not in markdown([*page((BODY, 100, 34)), stretched, *page((BODY, 190, 34), (BODY, 235, 34))])


def test_a_heading_without_descenders_is_as_large_as_one_with_them() -> None:
    lower = Line("1 Introduction", Box(100, 100, 100 + 14 * 17, 137), 0.99)
    assert markdown([lower, *page((BODY, 190, 34), (BODY, 235, 34))]).startswith("### 1 Introduction")


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


def test_items_of_a_list_stand_on_lines_of_their_own_without_a_gap() -> None:
    lines = page((BODY, 100, 34), ("• Pears", 190, 34), ("• Plums", 260, 34), (BODY, 350, 34))
    assert markdown(lines) == f"{BODY}\n\n- Pears\n- Plums\n\n{BODY}"


def test_numbered_items_keep_their_numbers() -> None:
    assert markdown(page((BODY, 100, 34), ("1. Pears", 190, 34), ("2. Plums", 235, 34))) == (
        f"{BODY}\n\n1. Pears\n2. Plums"
    )


def test_aligned_cells_over_three_rows_are_a_table() -> None:
    cells = [
        Line(text, Box(left, 200 + 45 * row, left + 90, 234 + 45 * row), 0.9)
        for row, texts in enumerate([("Name", "Sum"), ("Fig", "7"), ("Plum", "9")])
        for left, text in zip((100, 600), texts, strict=True)
    ]
    assert markdown([*page((BODY, 155, 34)), *cells]) == (
        f"{BODY}\n\n| Name | Sum |\n| --- | --- |\n| Fig | 7 |\n| Plum | 9 |"
    )


def columns(left: list[str], right: list[str]) -> list[Line]:
    return [*column(left, 100, 100), *column(right, 700, 100)]


def test_a_paragraph_goes_on_in_the_next_column() -> None:
    text = "Every page is committed as it is"
    right = ["finished, and it is streamed by id", *[text] * 5]
    assert markdown(columns([text] * 6, right)) == " ".join([*[text] * 6, *right])


def test_a_word_hyphenated_at_the_end_of_a_column_is_whole() -> None:
    text = "Every page is committed as it is"
    left, right = [*[text] * 5, "Every page of the book is com-"], ["mitted as it is finished, and then", *[text] * 5]
    assert "of the book is committed as it is finished" in markdown(columns(left, right))


def test_a_sentence_that_ended_with_the_column_does_not_go_on() -> None:
    text = "Every page is committed as it is"
    blocks = markdown(
        columns([*[text] * 5, "Every page is committed today."], ["it is streamed by id to anyone who", *[text] * 5])
    )
    assert "today.\n\nit is streamed" in blocks


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
