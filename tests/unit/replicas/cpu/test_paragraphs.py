import pytest

from app.replicas.cpu.engine import Box, Line
from app.replicas.cpu.paragraphs import join, paragraphs_of
from app.replicas.cpu.rows import Row, rows_of

CHARACTER_WIDTH = 14.0


def rows(*texts: str, left: float = 100) -> list[Row]:
    """Rows of one size and pitch; leading spaces indent."""
    return rows_of(
        Line(
            text.strip(),
            Box(
                left + (len(text) - len(text.lstrip())) * CHARACTER_WIDTH,
                100 + 45 * number,
                left + len(text) * CHARACTER_WIDTH,
                134 + 45 * number,
            ),
            0.99,
        )
        for number, text in enumerate(texts)
    )


def split(*texts: str) -> list[str]:
    return [join(paragraph) for paragraph in paragraphs_of(rows(*texts))]


def test_ragged_rows_that_had_no_room_for_the_next_word_are_one_paragraph() -> None:
    assert split(
        "Every page is committed as it is finished, and it is streamed by",
        "id to anyone who asks, and is never lost or reads",
        "extraordinarily read twice whatever dies.",
    ) == [
        "Every page is committed as it is finished, and it is streamed by id to anyone who asks, and is never "
        "lost or reads extraordinarily read twice whatever dies."
    ]


def test_a_row_that_ends_well_short_of_the_text_width_ends_its_paragraph() -> None:
    first = "Every page is committed as it is finished, and it is streamed by"
    assert split(first, "id to anyone.", "A gateway takes uploads, renders their pages, and forwards each") == [
        f"{first} id to anyone.",
        "A gateway takes uploads, renders their pages, and forwards each",
    ]


@pytest.mark.parametrize(
    "items",
    [("Apples", "Pears and plums", "Cherries from the garden"), ("Pear", "Plum", "Fig"), ("one", "two")],
)
def test_a_list_of_short_lines_is_not_glued_together(items: tuple[str, ...]) -> None:
    assert split(*items) == list(items)


def test_an_indented_first_row_starts_a_paragraph() -> None:
    full = "Every page is committed as it is finished, and it is streamed by"
    assert split(full, "   A gateway takes uploads, renders their pages, and then sends", full) == [
        full,
        f"A gateway takes uploads, renders their pages, and then sends {full}",
    ]


def test_a_hanging_indent_stays_with_its_first_row() -> None:
    first = "(a) Every page is committed as it is finished, and it is streamed"
    assert len(split(first, "    by id to anyone who asks, and it is never lost nor read again", "    or so.")) == 1


@pytest.mark.parametrize(
    ("upper", "lower", "joined"),
    [
        ("a hyphen-", "ated word", "a hyphenated word"),
        ("Vor-", "und Nachteile", "Vor- und Nachteile"),
        ("Ein-", "oder Ausgang", "Ein- oder Ausgang"),
        ("pre-", "and post-war", "pre- and post-war"),
        ("Freund-", "undank", "Freundundank"),
        ("Jean-", "Paul", "Jean- Paul"),
        ("1990-", "1995", "1990- 1995"),
        ("a dash -", "like this", "a dash - like this"),
        ("Fuß-", "über", "Fußüber"),
        ("两个黄鹂", "鸣翠柳", "两个黄鹂鸣翠柳"),
        ("end", "start", "end start"),
    ],
)
def test_rows_are_joined_as_their_words_ask(upper: str, lower: str, joined: str) -> None:
    assert join(rows(upper, lower)) == joined


def test_bullets_begin_paragraphs_and_what_hangs_below_them_belongs_to_them() -> None:
    first = "• Every page is committed as it is finished, and it is streamed"
    assert split(first, "   by id to anyone who asks, and it is never lost nor read again,", "• Fig", "• Plum") == [
        f"{first} by id to anyone who asks, and it is never lost nor read again,",
        "• Fig",
        "• Plum",
    ]


def test_a_number_begins_an_item_where_it_goes_on_counting() -> None:
    first = "7. Every page is committed as it is finished, and it is streamed"
    second = "8. Every page is committed as it is finished, and is streamed to"
    assert split(first, second, "   anyone") == [first, f"{second} anyone"]


def test_a_date_that_wraps_is_no_item() -> None:
    first = "Every page is committed as it is finished, and it is streamed on"
    assert split(first, "12. March to anyone who asks for it") == [f"{first} 12. March to anyone who asks for it"]
