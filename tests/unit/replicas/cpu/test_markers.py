import pytest

from app.replicas.cpu.markers import as_markdown, is_item, is_marker, number_of


@pytest.mark.parametrize("bullet", ["• ", "•", "● ", "▪ ", "· ", "- ", "– ", "— ", "* "])
def test_bullets_become_those_of_markdown(bullet: str) -> None:
    assert is_item(f"{bullet}Close the shutters")
    assert as_markdown(f"{bullet}Close the shutters") == "- Close the shutters"


@pytest.mark.parametrize(
    ("text", "number"), [("7. Close", 7), ("12) Close", 12), ("1874. Then", None), ("3.5 m", None)]
)
def test_numbers_of_items_stay(text: str, number: int | None) -> None:
    assert number_of(text) == number
    assert as_markdown(text) == text


@pytest.mark.parametrize("text", ["-5 degrees", "–", "•", "Close - the shutters", "1.", "*note"])
def test_other_signs_make_no_item(text: str) -> None:
    assert not is_item(text)


@pytest.mark.parametrize(("text", "expected"), [("•", True), ("1.", True), ("(b)", True), ("1", False), ("ab", False)])
def test_a_marker_alone_is_told_from_a_cell(text: str, expected: bool) -> None:
    assert is_marker(text) is expected
