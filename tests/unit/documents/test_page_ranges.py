import pytest

from app.documents.page_ranges import parse_page_range
from app.errors import PageRangeInvalid


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("1", (1,)),
        ("1-3, 8", (1, 2, 3, 8)),
        ("r1", (10,)),
        ("r3-r1", (8, 9, 10)),
        ("9-r1,2,2", (2, 9, 10)),
        ("8-99", (8, 9, 10)),
        ("r99-2", (1, 2)),
    ],
)
def test_ranges_of_a_file_of_ten_pages(text: str, pages: tuple[int, ...]) -> None:
    assert parse_page_range(text, 10) == pages


@pytest.mark.parametrize("text", ["", ",", "0", "r0", "a", "3-1", "r1-r3", "11", "1--2", "-1", "1-2-3", "٣"])
def test_what_names_no_page_is_refused(text: str) -> None:
    with pytest.raises(PageRangeInvalid):
        parse_page_range(text, 10)
