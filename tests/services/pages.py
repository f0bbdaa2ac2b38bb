"""Pages that a stand-in tells apart by their shape, so that a text on the wrong page is noticed."""

import io
from collections.abc import Sequence

import pymupdf
from PIL import Image

from tests.standins import Call

WIDTH_POINTS = 322
SCALE = 4
"""Pixels a point of an image whose longest side is the 1288 pixels that the generic profile asks for."""
LEAST_HEIGHT_POINTS = 90
MOST_SHAPES = WIDTH_POINTS - LEAST_HEIGHT_POINTS


def shaped_pdf(shapes: Sequence[int]) -> bytes:
    """A PDF with a page for each of `shapes`, numbers below `MOST_SHAPES`."""
    document = pymupdf.open()
    for shape in shapes:
        page = document.new_page(width=WIDTH_POINTS, height=LEAST_HEIGHT_POINTS + shape)
        page.insert_text((36, 48), f"Shape {shape}", fontsize=24)
    data: bytes = document.tobytes()
    document.close()
    return data


def name_shape(call: Call) -> str:
    """The text that a stand-in reads on a page of `shaped_pdf`."""
    _, height = Image.open(io.BytesIO(call.image)).size
    return text_of(height // SCALE - LEAST_HEIGHT_POINTS)


def text_of(shape: int) -> str:
    return f"Shape {shape}"
