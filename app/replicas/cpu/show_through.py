"""Print of the sheet's other side, which shines through: faint, mirrored, and read as invented words."""

from collections.abc import Callable, Sequence

from PIL import Image

from app.replicas.cpu.engine import Line, confidence_of
from app.replicas.cpu.picture import Picture

_FAINT_LEVELS = 64
"""Grey levels between a line's paper and its ink, of 255. Show-through has 10 to 50; so does faded print."""
_PAPER_SHARE = 0.98
_INK_SHARE = 0.02
_DOUBTFUL_CONFIDENCE = 0.96
"""Faded print reads at 0.96 and more, mirrored print at 0.93 and less, mostly under 0.90."""

Read = Callable[[Picture], Sequence[Line]]


def shows_through(picture: Picture, lines: Sequence[Line], read: Read) -> bool:
    """Whether the faint and doubtful lines are mirrored print; if there are any, the mirrored page is read.

    Doubt alone does not tell: faded print on bad paper is faint and doubtful too, but not clearer in a mirror.
    """
    faint = [line for line in lines if is_faint_and_doubtful(line, picture.grey)]
    if not faint:
        return False
    mirrored = picture.mirrored()
    behind = [line for line in read(mirrored) if _contrast(mirrored.grey, line) < _FAINT_LEVELS]
    return bool(behind) and confidence_of(behind) > confidence_of(faint)


def is_faint_and_doubtful(line: Line, grey: Image.Image) -> bool:
    return line.confidence < _DOUBTFUL_CONFIDENCE and _contrast(grey, line) < _FAINT_LEVELS


def _contrast(grey: Image.Image, line: Line) -> int:
    """Grey levels between paper and ink inside the line's box."""
    histogram = grey.crop(
        (int(line.box.left), int(line.box.top), int(line.box.right), int(line.box.bottom))
    ).histogram()
    return _level(histogram, _PAPER_SHARE) - _level(histogram, _INK_SHARE)


def _level(histogram: Sequence[int], share: float) -> int:
    """The grey level that this share of the pixels is not brighter than."""
    wanted = share * sum(histogram)
    passed = 0
    for level, count in enumerate(histogram):
        passed += count
        if passed >= wanted:
            return level
    return len(histogram) - 1
