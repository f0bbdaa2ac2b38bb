"""From a page image to the lines on it, upright: skew and rotation undone, a better model asked where one is unsure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.replicas.cpu.bullets import with_bullets
from app.replicas.cpu.engine import Engine, Line, confidence_of
from app.replicas.cpu.picture import Picture
from app.replicas.cpu.show_through import is_faint_and_doubtful, shows_through
from app.replicas.cpu.skew import skew_degrees

LEGIBLE_CONFIDENCE = 0.80
"""Measured with PP-OCRv6: upright print, damaged too, reads at 0.88 and more; rotated print at 0.73 and less."""
SURE_CONFIDENCE = 0.96
"""Clean print reads at 0.97 and more."""
NOISE_CONFIDENCE = 0.5
"""Lines below are left out: stains and pictures read as letters. PaddleOCR's `drop_score`."""
_TALL = 1.4
"""Height of a box in widths; rows of print that lie on their side make such boxes."""
_ROW_CHARACTERS = 4
"""What is shorter may be tall although it stands upright: a page number, an initial."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """What an engine saw on a page image, and how the image was turned for that."""

    picture: Picture
    """As the engine got it: line boxes are in its pixels."""
    lines: Sequence[Line]
    model: str
    rotation: int = 0
    """Degrees clockwise by which the image was turned: 0, 90, 180 or 270."""
    skew_degrees: float = 0.0
    """Degrees clockwise by which it was turned on top of that."""
    left_out: int = 0
    """Lines that are no print of this page: show-through and noise."""

    @property
    def confidence(self) -> float:
        return confidence_of(self.lines)

    @property
    def is_legible(self) -> bool:
        return self.confidence >= LEGIBLE_CONFIDENCE

    @property
    def is_sideways(self) -> bool:
        rows = [line for line in self.lines if len(line.text) >= _ROW_CHARACTERS]
        return sum(line.height > _TALL * line.width for line in rows) > len(rows) / 2

    def without(self, unwanted: Callable[[Line], bool]) -> "Recognition":
        lines = [line for line in self.lines if not unwanted(line)]
        return replace(self, lines=lines, left_out=self.left_out + len(self.lines) - len(lines))


class Recognizer:
    """Reads pages with an engine: one reading for a clean upright page, at most five for others."""

    def __init__(self, engine: Engine, on_reading: Callable[[], None]) -> None:
        """`on_reading` is called after each reading of the engine."""
        self._engine = engine
        self._on_reading = on_reading

    def recognize(self, image: bytes) -> Recognition:
        """Raises whatever the engine raises."""
        found = self._upright(Picture(image))
        if shows_through(found.picture, found.lines, self._read):
            found = self._surely(found, lambda line: is_faint_and_doubtful(line, found.picture.grey))
        else:
            found = self._surely(found, lambda line: False)
        found = found.without(lambda line: line.confidence < NOISE_CONFIDENCE)
        return replace(found, lines=with_bullets(found.lines, found.picture.grey))

    def _upright(self, picture: Picture) -> Recognition:
        """The page in the orientation that reads best."""
        tried = [self._turned(picture, 0)]
        for rotation in _turns(tried[0]):
            tried.append(self._turned(picture, rotation))
            if tried[-1].is_legible and not tried[-1].is_sideways:
                break
        return max(tried, key=lambda found: (not found.is_sideways, found.confidence))

    def _turned(self, picture: Picture, rotation: int) -> Recognition:
        turned = picture.turned(rotation)
        skew = skew_degrees(turned.grey)
        turned = picture.turned(rotation, skew)
        return Recognition(turned, self._read(turned), self._engine.models[0], rotation, skew)

    def _surely(self, found: Recognition, unwanted: Callable[[Line], bool]) -> Recognition:
        """Without unwanted lines; by the most accurate model where the fastest one is unsure of the others."""
        wanted = found.without(unwanted)
        better = self._engine.models[-1]
        if not wanted.is_legible or wanted.confidence >= SURE_CONFIDENCE or better == found.model:
            return wanted
        again = replace(found, lines=self._read(found.picture, better), model=better).without(unwanted)
        return max(wanted, again, key=lambda tried: tried.confidence)

    def _read(self, picture: Picture, model: str | None = None) -> list[Line]:
        lines = self._engine.read(picture.encoded, model or self._engine.models[0])
        self._on_reading()
        return lines


def _turns(found: Recognition) -> tuple[int, ...]:
    """Turns that may bring the page upright, likeliest first; none where it is.

    The engine turns tall boxes counter-clockwise before it reads them: a sideways page is legible when that was right.
    """
    if found.is_sideways:
        return (270, 90) if found.is_legible else (90, 270)
    return () if found.is_legible else (180,)
