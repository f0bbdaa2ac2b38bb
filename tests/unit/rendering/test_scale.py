import pytest

from app.errors import PageDamaged, PageTooLarge
from app.rendering.scale import zoom

MAX_PIXELS = 25_000_000


@pytest.mark.parametrize(
    ("size", "longest_side", "max_pixels", "pixels"),
    [
        pytest.param((595, 842), 1288, MAX_PIXELS, (910, 1288), id="a sheet gets its longest side"),
        pytest.param((842, 595), 1288, MAX_PIXELS, (1288, 910), id="a sheet across too"),
        pytest.param((14_400, 14_400), 1288, MAX_PIXELS, (1288, 1288), id="a poster no more"),
        pytest.param((90, 60), 1288, MAX_PIXELS, (360, 240), id="a label is blown up 4 times at most"),
        pytest.param((1, 1), 1288, MAX_PIXELS, (16, 16), id="a dot gets the least side"),
        pytest.param((200, 8000), 1288, MAX_PIXELS, (322, 12_880), id="a till roll stays legible"),
        pytest.param((200, 8000), 1288, 1_000_000, (158, 6325), id="a till roll within the pixel limit"),
        pytest.param((1000, 1000), 2048, 1_000_000, (1000, 1000), id="the pixel limit holds"),
    ],
)
def test_pixels_of_a_page(
    size: tuple[float, float], longest_side: int, max_pixels: int, pixels: tuple[int, int]
) -> None:
    scale = zoom(size, longest_side, max_pixels)
    assert (round(size[0] * scale), round(size[1] * scale)) == pixels


def test_a_picture_is_not_blown_up_beyond_its_own_pixels() -> None:
    assert zoom((90, 60), 1288, MAX_PIXELS, max_zoom=1.5) == 1.5
    assert zoom((90, 60), 1288, MAX_PIXELS, max_zoom=8.0) == 8.0
    assert zoom((900, 600), 1288, MAX_PIXELS, max_zoom=8.0) == 1288 / 900


def test_a_strip_too_thin_to_read_is_refused() -> None:
    with pytest.raises(PageTooLarge):
        zoom((1_440_000, 10), 1288, MAX_PIXELS)


@pytest.mark.parametrize("size", [(0.0, 10.0), (float("inf"), 10.0), (float("nan"), 10.0), (10.0, float("nan"))])
def test_a_page_without_area_is_damaged(size: tuple[float, float]) -> None:
    with pytest.raises(PageDamaged):
        zoom(size, 1288, MAX_PIXELS)
