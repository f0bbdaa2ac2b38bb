import pytest
from PIL import Image, ImageDraw

from app.replicas.cpu.bullets import with_bullets
from app.replicas.cpu.engine import Line
from tests.unit.replicas.cpu.lines import CHARACTER_WIDTH, PITCH, column

TEXTS = ["Return the key", "Close the shutters", "Feed the stove"]
LINES = column(TEXTS, 150, 100)


def draw(*spots: tuple[float, float, float, float]) -> Image.Image:
    """Paper with spots of (left, top, width, height)."""
    paper = Image.new("L", (600, 400), 255)
    for left, top, width, height in spots:
        ImageDraw.Draw(paper).ellipse((left, top, left + width, top + height), fill=0)
    return paper


def dots(*rows: int, left: float = 105, size: float = 8) -> list[tuple[float, float, float, float]]:
    return [(left, 115 + row * PITCH - size / 2, size, size) for row in rows]


def texts(paper: Image.Image, lines: list[Line] = LINES) -> list[str]:
    return [line.text for line in with_bullets(lines, paper)]


def test_dots_below_each_other_in_front_of_lines_are_bullets() -> None:
    found = with_bullets(LINES, draw(*dots(0, 2)))
    assert [line.text for line in found] == ["• Return the key", "Close the shutters", "• Feed the stove"]
    assert found[0].box.left == pytest.approx(105, abs=1)
    assert found[0].box.right == LINES[0].box.right


@pytest.mark.parametrize(
    "spots",
    [
        dots(1),
        [*dots(0), *dots(1, left=125)],
        dots(0, 1, 2, size=2),
        dots(0, 1, 2, size=22),
        dots(0, 1, 2, left=60),
        [(105, 122 + row * PITCH, 7, 7) for row in range(3)],
        [(100, 113 + row * PITCH, 20, 5) for row in range(3)],
        [(110, 40, 4, 300)],
        [*dots(0, 1, 2), *dots(0, 1, 2, left=125)],
    ],
    ids=["one alone", "not aligned", "specks", "blots", "far away", "full stops", "dashes", "a rule", "two dots"],
)
def test_other_spots_are_none(spots: list[tuple[float, float, float, float]]) -> None:
    assert texts(draw(*spots)) == TEXTS


def test_spots_in_the_print_before_a_cell_are_none() -> None:
    before = column(["1.", "2.", "3."], 150 - 2 * CHARACTER_WIDTH - 10, 100)
    assert texts(draw(*dots(0, 1, 2, left=130)), [*before, *LINES]) == ["1.", "2.", "3.", *TEXTS]


def test_a_line_at_the_edge_of_the_page_has_room_for_none() -> None:
    assert texts(draw(*dots(0, 1, 2)), column(TEXTS, 1, 100)) == TEXTS
