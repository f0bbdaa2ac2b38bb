"""Bullets that stand too far from their text for an engine to see them."""

from collections.abc import Sequence
from dataclasses import replace

from PIL import Image

from app.replicas.cpu.engine import Box, Line

_REACH = 2.0
"""How far to the left of its text a bullet stands at most. This and the following in heights of the text's box."""
_MIN_SIZE = 0.12
_MAX_SIZE = 0.5
_OFF_CENTRE = 0.25
_ALIGNED = 0.5
_ROUND = 1.6
"""Longer side in shorter ones."""
_INK_LEVEL = 128
_TOUCH_PIXELS = 2
"""The edge of a box is not looked at: the print in it may reach that far."""
_AT_LEAST = 2
"""One speck may be dirt; two on one vertical are bullets."""


def with_bullets(lines: Sequence[Line], grey: Image.Image) -> list[Line]:
    """The lines, those with a bullet in front of them led by `•`; their boxes then hold it too."""
    bullets = {index: box for index, line in enumerate(lines) if (box := _bullet(line, lines, grey)) is not None}
    return [
        _led(line, bullets[index]) if index in bullets and _is_aligned(index, bullets, line.height) else line
        for index, line in enumerate(lines)
    ]


def _bullet(line: Line, lines: Sequence[Line], grey: Image.Image) -> Box | None:
    """A small round spot alone in front of the line, at half of its height."""
    front = Box(
        max(0, line.box.left - _REACH * line.height), line.box.top, line.box.left - _TOUCH_PIXELS, line.box.bottom
    )
    if front.right <= front.left or any(_overlap(front, other.box) for other in lines):
        return None
    left, top = int(front.left), int(front.top)
    ink = grey.crop((left, top, int(front.right), int(front.bottom))).point(lambda level: 255 * (level < _INK_LEVEL))
    spot = ink.getbbox()
    if spot is None:
        return None
    box = Box(left + spot[0], top + spot[1], left + spot[2], top + spot[3])
    return box if _is_bullet(box, line) else None


def _is_bullet(box: Box, line: Line) -> bool:
    width, height = box.right - box.left, box.bottom - box.top
    return (
        _MIN_SIZE * line.height <= min(width, height)
        and max(width, height) <= min(_MAX_SIZE * line.height, _ROUND * min(width, height))
        and abs((box.top + box.bottom) / 2 - line.centre) <= _OFF_CENTRE * line.height
    )


def _is_aligned(index: int, bullets: dict[int, Box], height: float) -> bool:
    left = bullets[index].left
    return sum(abs(box.left - left) < _ALIGNED * height for box in bullets.values()) >= _AT_LEAST


def _led(line: Line, bullet: Box) -> Line:
    return replace(line, text=f"• {line.text}", box=line.box._replace(left=bullet.left))


def _overlap(one: Box, other: Box) -> bool:
    return one.left < other.right and other.left < one.right and one.top < other.bottom and other.top < one.bottom
