"""What is a blank page: A4 sheets drawn in grey. Print and lines are tried at two sizes that profiles ask for."""

from collections.abc import Callable
from functools import cache
from io import BytesIO
from random import Random
from typing import Any

import pymupdf
import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

from app.rendering.blank import is_blank
from tests.unit.rendering.pdfs import A4

PAPER = 235
"""Level of the paper of a scan."""

Pen = Callable[[Any], object]


LONGEST_SIDE = 1288


@pytest.fixture(params=[LONGEST_SIDE, 2339])
def longest_side(request: pytest.FixtureRequest) -> int:
    side: int = request.param
    return side


def _sheet(longest_side: int, *pens: Pen, paper: int = 255) -> Image.Image:
    document = pymupdf.open()
    page = document.new_page(width=A4[0], height=A4[1])
    for pen in pens:
        pen(page)
    scale = longest_side / A4[1]
    pixels = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csGRAY)
    image = Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)
    return image.point(lambda level: level * paper // 255)


@cache
def _noise(size: tuple[int, int], sigma: float) -> Image.Image:
    """Made of tiles: a whole page of it takes a fifth of a second."""
    tile, noise = Image.effect_noise((400, 400), sigma), Image.new("L", size)
    for x in range(0, size[0], tile.width):
        for y in range(0, size[1], tile.height):
            noise.paste(tile, (x, y))
    return noise


def _noisy(image: Image.Image, sigma: float) -> Image.Image:
    return ImageChops.add(image, _noise(image.size, sigma), 1, -128)


def _jpeg(image: Image.Image, quality: int) -> Image.Image:
    file = BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file)


def _text(text: str, points: float, grey: int = 0, at: tuple[float, float] = (297, 800)) -> Pen:
    return lambda page: page.insert_text(at, text, fontsize=points, color=[grey / 255] * 3)


def _line(width: float, grey: int, *, slope: float = 30) -> Pen:
    return lambda page: page.draw_line((100, 300.3), (250, 300.3 + slope), color=[grey / 255] * 3, width=width)


def _dust(count: int, radius: float) -> Pen:
    random = Random(count)

    def scatter(page: Any) -> None:
        for _ in range(count):
            at = random.uniform(20, A4[0] - 20), random.uniform(20, A4[1] - 20)
            page.draw_circle(at, radius, color=None, fill=[0.2] * 3)

    return scatter


def _lines_of_text(grey: int) -> Pen:
    def write(page: Any) -> None:
        for y in range(80, 780, 15):
            page.insert_text(
                (70, y), "the quick brown fox jumps over the lazy dog", fontsize=11, color=[grey / 255] * 3
            )

    return write


def _with_edges(image: Image.Image, level: int, points: float) -> Image.Image:
    """What a scanner adds at the left and at the top of a sheet that lies inside its glass."""
    pixels = round(points * max(image.size) / A4[1])
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, pixels, image.height), fill=level)
    pen.rectangle((0, 0, image.width, pixels // 2), fill=level)
    return image


@pytest.mark.parametrize("paper", [255, 240, 150, 20])
def test_an_empty_sheet_of_any_paper(paper: int) -> None:
    assert is_blank(_sheet(LONGEST_SIDE, paper=paper))


def test_an_empty_coloured_sheet() -> None:
    assert is_blank(Image.new("RGB", (910, 1288), (250, 220, 90)))


@pytest.mark.parametrize("sigma", [3, 7])
def test_an_empty_scan_with_noise(sigma: int) -> None:
    sheet = _noisy(_sheet(LONGEST_SIDE, paper=PAPER), sigma)
    assert is_blank(sheet)
    assert is_blank(_jpeg(sheet, 40))


@pytest.mark.parametrize("level", [20, 150])
@pytest.mark.parametrize("points", [2, 9])
def test_an_empty_scan_with_the_scanners_edges(level: int, points: float) -> None:
    assert is_blank(_with_edges(_noisy(_sheet(LONGEST_SIDE, paper=PAPER), 5), level, points))


def test_an_empty_scan_with_a_shadow() -> None:
    sheet = _noisy(_sheet(LONGEST_SIDE, paper=PAPER), 5)
    shadow = Image.linear_gradient("L").resize((sheet.width, LONGEST_SIDE // 20)).point(lambda level: 128 + level // 2)
    sheet.paste(ImageChops.multiply(sheet.crop((0, 0, *shadow.size)), shadow), (0, 0))
    assert is_blank(sheet)


def test_a_sheet_that_lay_askew() -> None:
    assert is_blank(_noisy(_sheet(LONGEST_SIDE, paper=PAPER), 5).rotate(0.5, fillcolor=0))


@pytest.mark.parametrize(("grey", "blur_points"), [(246, 0.0), (240, 0.5), (235, 1.0)])
def test_what_shines_through_from_the_other_side(grey: int, blur_points: float) -> None:
    back = ImageOps.mirror(_sheet(LONGEST_SIDE, _lines_of_text(grey)))
    assert is_blank(_noisy(back.filter(ImageFilter.GaussianBlur(blur_points * LONGEST_SIDE / A4[1])), 4))


@pytest.mark.parametrize("radius", [0.3, 0.5, 0.7])
def test_dust_and_dots(radius: float) -> None:
    assert is_blank(_sheet(LONGEST_SIDE, _dust(25, radius)))
    assert is_blank(_sheet(LONGEST_SIDE, _text(".", 12)))


@pytest.mark.parametrize(("points", "grey"), [(6, 0), (6, 204), (8, 204), (12, 221)])
def test_one_line_of_print_however_small_and_light(longest_side: int, points: float, grey: int) -> None:
    assert not is_blank(_sheet(longest_side, _text("page two", points, grey, (300, 420))))


@pytest.mark.parametrize("digit", ["1", "4", "7"])
@pytest.mark.parametrize(("points", "grey"), [(6, 0), (6, 170), (10, 187)])
def test_a_lone_page_number(longest_side: int, points: float, grey: int, digit: str) -> None:
    assert not is_blank(_sheet(longest_side, _text(digit, points, grey)))


@pytest.mark.parametrize("at", [(13, 300), (572, 500), (300, 20), (300, 829)])
def test_print_half_a_centimetre_from_the_edge_of_a_clean_sheet(at: tuple[float, float]) -> None:
    assert not is_blank(_sheet(LONGEST_SIDE, _text("12", 8, at=at)))


def test_a_page_number_on_a_scan_with_noise_and_edges() -> None:
    sheet = _noisy(_sheet(LONGEST_SIDE, _text("7", 9, 60), paper=PAPER), 8)
    assert not is_blank(_with_edges(_jpeg(sheet, 50).convert("L"), 90, 5))


@pytest.mark.parametrize(("width", "grey"), [(0.5, 190), (1.0, 210)])
@pytest.mark.parametrize("slope", [0, 30])
def test_a_faint_pencil_line(longest_side: int, width: float, grey: int, slope: float) -> None:
    assert not is_blank(_sheet(longest_side, _line(width, grey, slope=slope)))
    assert not is_blank(_noisy(_sheet(longest_side, _line(width, grey, slope=slope), paper=PAPER), 4))


def test_print_on_dark_paper_and_light_print_on_dark() -> None:
    assert not is_blank(_sheet(LONGEST_SIDE, _text("small", 7, at=(300, 420)), paper=120))
    assert not is_blank(ImageOps.invert(_sheet(LONGEST_SIDE, _text("small", 7, at=(300, 420)))))


@pytest.mark.parametrize(("ink", "paper"), [((0, 110, 0), (205, 0, 0)), ((255, 255, 0), (255, 255, 255))])
def test_print_that_differs_from_its_paper_in_colour_only(
    ink: tuple[int, int, int], paper: tuple[int, int, int]
) -> None:
    mask = ImageOps.invert(_sheet(1288, _text("red and green", 10, at=(300, 420))))
    assert not is_blank(Image.composite(Image.new("RGB", mask.size, ink), Image.new("RGB", mask.size, paper), mask))


def test_full_pages() -> None:
    assert not is_blank(_sheet(LONGEST_SIDE, _lines_of_text(0)))
    assert not is_blank(_noise((LONGEST_SIDE * 7 // 10, LONGEST_SIDE), 80))


@pytest.mark.parametrize("size", [(1, 1), (16, 16), (40, 12), (16, 12_000)])
def test_pictures_of_any_size(size: tuple[int, int]) -> None:
    assert is_blank(Image.new("L", size, 255))
