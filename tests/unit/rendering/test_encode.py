import base64
from io import BytesIO

import pytest
from PIL import Image

from app.rendering.encode import encode_base64, grey_if_grey


def _decoded(text: bytes) -> Image.Image:
    return Image.open(BytesIO(base64.b64decode(text, validate=True)))


@pytest.mark.parametrize(("media_type", "name"), [("image/jpeg", "JPEG"), ("image/png", "PNG")])
def test_the_image_is_of_the_type_asked_for(media_type: str, name: str) -> None:
    image = _decoded(encode_base64(Image.new("RGB", (30, 20), "red"), media_type))
    assert (image.format, image.size, image.mode) == (name, (30, 20), "RGB")


def test_an_image_without_colour_becomes_grey() -> None:
    assert grey_if_grey(Image.new("RGB", (30, 20), (90, 90, 90))).mode == "L"


def test_a_single_coloured_pixel_makes_a_page_coloured() -> None:
    page = Image.new("RGB", (1288, 911), "white")
    page.putpixel((700, 500), (255, 255, 235))
    assert grey_if_grey(page).mode == "RGB"


def test_black_ink_out_of_a_colour_profile_is_grey() -> None:
    assert grey_if_grey(Image.new("RGB", (30, 20), (35, 31, 32))).mode == "L"
