import pytest

from app.documents.text import base_name, clean_text


def test_control_characters_go_and_text_stays() -> None:
    assert clean_text("a\x00b\tc\r\nd\re\x1b[1m \ud800x\uffff😀") == "ab\tc\nd\ne[1m x😀"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\windows\\x.pdf", "x.pdf"),
        ("Prüfung 试.pdf", "Prüfung 试.pdf"),
        ("a\x00b\nc.pdf", "ab c.pdf"),
        ("folder/", ""),
    ],
)
def test_names_are_text_never_paths(given: str, name: str) -> None:
    assert base_name(given) == name
