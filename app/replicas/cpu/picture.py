"""A page image as the engine gets it and as pixels."""

import io
from functools import cached_property

from PIL import Image, ImageOps


class Picture:
    """An encoded page image, decoded when that is asked for."""

    def __init__(self, encoded: bytes) -> None:
        self.encoded = encoded

    @cached_property
    def grey(self) -> Image.Image:
        with Image.open(io.BytesIO(self.encoded)) as image:
            image.draft("L", image.size)  # leaves a JPEG's colours alone
            return image.convert("L")

    def turned(self, quarter_turn: int, degrees: float = 0.0) -> "Picture":
        """Turned clockwise by a multiple of 90 degrees, then by a small angle, on white where the page ends."""
        if not quarter_turn and not degrees:
            return self
        pixels = self._pixels().rotate(-quarter_turn, expand=True)
        return _picture(pixels.rotate(-degrees, Image.Resampling.BILINEAR, fillcolor="white"))

    def mirrored(self) -> "Picture":
        """As seen from the back of the sheet."""
        return _picture(ImageOps.mirror(self._pixels()))

    def _pixels(self) -> Image.Image:
        with Image.open(io.BytesIO(self.encoded)) as image:
            return image.convert("RGB")


def _picture(pixels: Image.Image) -> Picture:
    buffer = io.BytesIO()
    pixels.save(buffer, "BMP")
    return Picture(buffer.getvalue())
