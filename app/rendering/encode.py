"""Pixels to base64 text."""

import base64
from io import BytesIO

from PIL import Image, ImageChops

# Pillow's encoders: MuPDF's own are 10 to 40 times slower.
_FORMATS: dict[str, tuple[str, dict[str, int]]] = {
    "image/jpeg": ("JPEG", {"quality": 90}),
    "image/png": ("PNG", {"compress_level": 1}),
}
GREY_TOLERANCE = 6
"""Levels of 255 by which the channels of a grey pixel may differ: black ink in CMYK comes out as (35, 31, 32)."""


def encode_base64(image: Image.Image, media_type: str) -> bytes:
    """`image` as JPEG (quality 90) or PNG, in base64 without line breaks."""
    name, options = _FORMATS[media_type]
    encoded = BytesIO()
    image.save(encoded, name, **options)
    return base64.b64encode(encoded.getbuffer())


def grey_if_grey(image: Image.Image) -> Image.Image:
    """An RGB image in grey where no pixel has a colour; every pixel counts: a stamp may be a few of them."""
    if image.mode == "L":
        return image
    red, green, blue = image.split()
    grey = all(_largest_difference(green, other) <= GREY_TOLERANCE for other in (red, blue))
    return image.convert("L") if grey else image


def _largest_difference(one: Image.Image, other: Image.Image) -> float:
    _, largest = ImageChops.difference(one, other).getextrema()
    assert isinstance(largest, int | float)  # one band
    return largest
