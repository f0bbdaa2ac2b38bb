import pytest

from app.api.cursors import PageCursor, parse_page_cursor, parse_seq
from app.errors import CursorInvalid


def test_cursors_are_what_the_events_carry() -> None:
    assert parse_seq("17") == 17
    assert parse_page_cursor(str(PageCursor(2, 17))) == PageCursor(2, 17)


@pytest.mark.parametrize("text", ["", "0.3", "-1", "x", "1e3", "9" * 19, "٣"])
def test_a_cursor_of_another_order_is_refused_in_completed_order(text: str) -> None:
    with pytest.raises(CursorInvalid):
        parse_seq(text)


@pytest.mark.parametrize("text", ["", "3", "0.3.1", ".3", "0.", "-0.3", "a.b"])
def test_a_cursor_of_another_order_is_refused_in_page_order(text: str) -> None:
    with pytest.raises(CursorInvalid):
        parse_page_cursor(text)
