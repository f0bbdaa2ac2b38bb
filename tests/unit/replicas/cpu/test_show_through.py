from collections.abc import Sequence

import pytest
from PIL import Image, ImageDraw

from app.replicas.cpu.engine import Line
from app.replicas.cpu.picture import Picture
from app.replicas.cpu.show_through import is_faint_and_doubtful, shows_through
from tests.pages import encode
from tests.unit.replicas.cpu.lines import line


def paper(lines: Sequence[Line], ink: int) -> Picture:
    page = Image.new("L", (600, 300), 250)
    for printed in lines:
        ImageDraw.Draw(page).rectangle((printed.box.left + 5, printed.box.top + 5, 300, printed.box.top + 20), fill=ink)
    return Picture(encode(page, "PNG"))


def printed(confidence: float) -> list[Line]:
    return [line("enlt to ebia 9219ve1", 40, top, confidence=confidence) for top in (50, 100)]


@pytest.mark.parametrize(
    ("ink", "confidence", "expected"), [(220, 0.85, True), (220, 0.97, False), (100, 0.85, False), (100, 0.97, False)]
)
def test_only_faint_and_doubtful_lines_are_suspects(ink: int, confidence: float, expected: bool) -> None:
    lines = printed(confidence)
    assert is_faint_and_doubtful(lines[0], paper(lines, ink).grey) is expected


def test_faint_lines_that_are_clearer_in_a_mirror_show_through() -> None:
    lines = printed(0.85)
    seen: list[Picture] = []

    def read(mirrored: Picture) -> list[Line]:
        seen.append(mirrored)
        return [line("level side of the", 320, 50, confidence=0.98)]

    picture = paper(lines, 220)
    assert shows_through(picture, lines, read)
    assert seen[0].grey.getpixel((599 - 50, 60)) == picture.grey.getpixel((50, 60)) == 220


def test_faint_lines_that_are_no_clearer_in_a_mirror_are_print() -> None:
    lines = printed(0.85)
    assert not shows_through(paper(lines, 220), lines, lambda _: [line("ebia", 320, 50, confidence=0.6)])


def test_a_mirrored_page_without_lines_proves_nothing() -> None:
    lines = printed(0.85)
    assert not shows_through(paper(lines, 220), lines, lambda _: [])


def test_print_of_this_side_is_not_taken_for_show_through_in_the_mirror() -> None:
    dark = line("CLEAR PRINT", 40, 150, confidence=0.99)
    page = Image.new("L", (600, 300), 250)
    ImageDraw.Draw(page).rectangle((40, 50, 300, 70), fill=220)
    ImageDraw.Draw(page).rectangle((300, 150, 560, 170), fill=0)
    picture = Picture(encode(page, "PNG"))
    assert not shows_through(picture, printed(0.85)[:1], lambda _: [dark])


@pytest.mark.parametrize(("ink", "confidence"), [(220, 0.98), (60, 0.7)])
def test_a_page_without_suspects_is_not_read_again(ink: int, confidence: float) -> None:
    lines = printed(confidence)

    def read(_: Picture) -> list[Line]:
        raise AssertionError("read again")

    assert not shows_through(paper(lines, ink), lines, read)
