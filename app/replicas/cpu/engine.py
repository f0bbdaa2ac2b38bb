"""What an OCR engine is to the server: image bytes in, lines of text out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Box(NamedTuple):
    """An upright box in pixels of the page image, from its top left corner."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of text that the engine found in one box; a line of print may come as several."""

    text: str
    box: Box
    confidence: float
    """0 to 1."""

    @property
    def height(self) -> float:
        return self.box.bottom - self.box.top

    @property
    def width(self) -> float:
        return self.box.right - self.box.left

    @property
    def centre(self) -> float:
        return (self.box.top + self.box.bottom) / 2


def confidence_of(lines: Iterable[Line]) -> float:
    """Mean confidence of the lines, weighed by their length: 0 to 1; 1 where there are none."""
    weights = [(len(line.text), line.confidence) for line in lines]
    characters = sum(length for length, _ in weights)
    return sum(length * confidence for length, confidence in weights) / characters if characters else 1.0


class Engine(Protocol):
    """An OCR engine. Called from one thread at a time."""

    @property
    def name(self) -> str:
        """Engine and version."""

    @property
    def models(self) -> Sequence[str]:
        """Names of its recognition models, from the fastest to the most accurate; at least one."""

    def read(self, image: bytes, model: str) -> list[Line]:
        """Lines on a JPEG, PNG or BMP image, in any order. May raise anything: the page fails, the server goes on."""
