import random

import pytest
from PIL import Image

from app.replicas.cpu.skew import skew_degrees
from tests.pages import BODY_SIZE, draw_page

PAGE = draw_page(
    [("Every page is committed as it is finished, streamed by id to anyone who asks", BODY_SIZE)] * 12,
    size=(1300, 900),
).convert("L")


@pytest.mark.parametrize("degrees", [-4.0, -2.3, -0.5, 0.4, 1.0, 3.7])
def test_the_angle_that_levels_the_rows_is_found_to_a_tenth(degrees: float) -> None:
    skewed = PAGE.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255)  # counter-clockwise
    assert skew_degrees(skewed) == pytest.approx(degrees, abs=0.1001)


@pytest.mark.parametrize("degrees", [-0.2, 0.0, 0.1])
def test_level_rows_are_left_alone(degrees: float) -> None:
    assert skew_degrees(PAGE.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255)) == 0


@pytest.mark.parametrize(
    "image",
    [
        Image.new("L", (800, 1100), 255),
        Image.new("L", (800, 1100), 0),
        Image.frombytes("L", (400, 400), random.Random(1).randbytes(160_000)),
        Image.new("L", (1, 1)),
        Image.new("L", (3000, 2)),
    ],
    ids=["white", "black", "noise", "pixel", "strip"],
)
def test_what_has_no_rows_is_left_alone(image: Image.Image) -> None:
    assert skew_degrees(image) == 0
