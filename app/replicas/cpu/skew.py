"""How far the rows of print are from level."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from PIL import Image, ImageOps

MAX_DEGREES = 4.0
"""Sheets lie better than that in a feeder; further out, pictures and tables would be taken for print."""
_COARSE_STEP_DEGREES = 0.5
_STEP_DEGREES = 0.1
_LEVEL_DEGREES = 0.3
"""Engines read rows that are off by less as well as level ones."""
_CLEARER = 1.05
"""How much sharper the rows must get when the page is turned; a page without rows is left alone."""
_COPY_PIXELS = 1000
_STRIPS = 64
"""Across the page; inside one, a row at the largest angle falls by about a pixel of the copy."""


def skew_degrees(grey: Image.Image) -> float:
    """Degrees to turn the page clockwise by, so that its rows are level: to 0.1 within ±4; 0 for one that is level.

    A projection profile: level print adds up to dark rows and light gaps. The page is squeezed into narrow strips
    first, so that to turn it by a small angle is to shift the strips: 35 ms of CPU a page.
    """
    strips = _Strips(grey)
    coarse = strips.sharpest(0.0, MAX_DEGREES, _COARSE_STEP_DEGREES)
    fine = strips.sharpest(coarse, _COARSE_STEP_DEGREES, _STEP_DEGREES)
    if abs(fine) < _LEVEL_DEGREES or strips.sharpness(fine) <= _CLEARER * strips.sharpness(0.0):
        return 0.0
    return round(fine, 1)


class _Strips:
    """The page's ink on a small copy that is one pixel a strip wide."""

    def __init__(self, grey: Image.Image) -> None:
        scale = _COPY_PIXELS / max(grey.size)
        height = max(1, round(grey.height * scale))
        small = grey.resize((_STRIPS, height), Image.Resampling.BOX)
        self._ink = ImageOps.invert(small).convert("F")
        self._strip_width = grey.width * scale / _STRIPS

    def sharpest(self, centre: float, reach: float, step: float) -> float:
        count = round(reach / step)
        angles = (centre + number * step for number in range(-count, count + 1))
        return max((angle for angle in angles if abs(angle) <= MAX_DEGREES), key=self.sharpness)

    def sharpness(self, degrees: float) -> float:
        """How much the rows differ from their neighbours on the page turned clockwise by an angle."""
        fall = -math.tan(math.radians(degrees)) * self._strip_width
        shift = (1.0, 0.0, 0.0, fall, 1.0, -fall * _STRIPS / 2)
        level = self._ink.transform(self._ink.size, Image.Transform.AFFINE, shift, Image.Resampling.BILINEAR)
        profile = cast(Sequence[float], level.resize((1, level.height), Image.Resampling.BOX).get_flattened_data())
        return sum((below - above) ** 2 for above, below in pairwise(profile))
