"""Telling a sheet on which nothing stands from a page, by its pixels: a model asked to read nothing invents a text.

A page is scaled to about a pixel a point, which evens out the noise of scanners and of JPEG. What differs there from
the paper around it (local, so colour and shading of the paper don't count) is a spot; spots that touch are a mark.
A page is blank when it has no mark, but for those that are to be expected of a scanned empty sheet:

- specks: dust and dots of up to two pixels;
- the scanner's edge: marks in a narrow rim of the page, if some of them reach the very edge;
- what shines through from the other side, which stays below the contrast of a spot.

It errs towards "not blank", which costs a request; "blank" loses text. Light grey print (204 of 255 on white) from 6 pt
on, a lone digit, and a pencil line are marks. It takes 1.4 ms at 910 x 1,288 pixels and 3 ms at 1,653 x 2,339.
"""

from collections.abc import Iterator
from functools import reduce

from PIL import ImageChops, ImageOps
from PIL.Image import Image, Resampling

LONGEST_SIDE_PIXELS = 850
"""Of the scaled page: A4 gets a pixel a point."""
PAPER_PIXELS = 8
"""Side of the squares whose mean is the paper."""
SPOT_CONTRAST = 15
"""Levels of 255; show-through was seen to have 9, and 3 pt wide strokes of print have their full contrast."""
MAX_SPECK_PIXELS = 2
RIM_SHARE = 0.04
"""Of the shorter side: 8 mm of A4."""
MAX_SPOTS_SHARE = 0.08
"""Of all pixels; no empty sheet has more, even with the scanner's edge all around it."""

_SPOT = 255


def is_blank(image: Image) -> bool:
    """Whether nothing stands on a page; `image` is of mode `L` or `RGB`."""
    spots = _spots(image.reduce(max(1, round(max(image.size) / LONGEST_SIDE_PIXELS))))
    count = spots.histogram()[_SPOT]
    if count > MAX_SPOTS_SHARE * spots.width * spots.height:
        return False
    rim = round(RIM_SHARE * min(spots.size))
    at_rim = at_edge = False
    for left, top, right, bottom, reach in _marks(spots):
        if max(right - left, bottom - top) < MAX_SPECK_PIXELS:
            continue
        if reach >= rim:
            return False
        at_rim = True
        at_edge |= left == 0 or top == 0 or right == spots.width - 1 or bottom == spots.height - 1
    return at_edge or not at_rim


def _spots(image: Image) -> Image:
    """Where any band differs from the paper: `_SPOT`; elsewhere 0."""
    paper = image.reduce(PAPER_PIXELS).resize(image.size, Resampling.BILINEAR)
    contrast = reduce(ImageChops.lighter, ImageChops.difference(image, paper).split())
    return contrast.point([_SPOT * (level >= SPOT_CONTRAST) for level in range(256)])


def _marks(spots: Image) -> Iterator[tuple[int, int, int, int, int]]:
    """First and last column and row of each mark, and how far from the nearest edge its innermost pixel is."""
    width = spots.width + 2
    pixels = bytearray(ImageOps.expand(spots, 1).tobytes())  # with a frame, so that all have eight neighbours
    at = pixels.find(_SPOT)
    while at >= 0:
        places = [divmod(place, width) for place in _take(pixels, width, at)]
        rows, columns = [row - 1 for row, _ in places], [column - 1 for _, column in places]
        reach = max(
            min(column, row, spots.width - 1 - column, spots.height - 1 - row)
            for row, column in zip(rows, columns, strict=True)
        )
        yield min(columns), min(rows), max(columns), max(rows), reach
        at = pixels.find(_SPOT, at)


def _take(pixels: bytearray, width: int, start: int) -> list[int]:
    """Clear the mark that holds the pixel `start`; its pixels."""
    neighbours = (-width - 1, -width, -width + 1, -1, 1, width - 1, width, width + 1)
    pixels[start] = 0
    taken = [start]
    for place in taken:  # grows meanwhile
        for step in neighbours:
            if pixels[place + step]:
                pixels[place + step] = 0
                taken.append(place + step)
    return taken
