"""Lines made by hand."""

from collections.abc import Sequence

from app.replicas.cpu.engine import Box, Line

HEIGHT = 30.0
CHARACTER_WIDTH = 13.0
PITCH = 40.0


def line(text: str, left: float, top: float, *, size: float = 1.0, confidence: float = 0.99) -> Line:
    """A line of print whose box is as wide as its text; `size` 1 is body print."""
    width = CHARACTER_WIDTH * size * len(text)
    return Line(text, Box(left, top, left + width, top + HEIGHT * size), confidence)


def column(texts: Sequence[str], left: float, top: float, *, pitch: float = PITCH) -> list[Line]:
    """Lines below each other."""
    return [line(text, left, top + number * pitch) for number, text in enumerate(texts)]
