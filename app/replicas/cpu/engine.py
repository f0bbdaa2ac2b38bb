"""What an OCR engine is to the server: image bytes in, lines of text out."""

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
    def centre(self) -> float:
        return (self.box.top + self.box.bottom) / 2


class Engine(Protocol):
    """An OCR engine, loaded. Called from one thread at a time."""

    @property
    def name(self) -> str:
        """Engine and version."""

    @property
    def model(self) -> str:
        """Name of the recognition model."""

    def read(self, image: bytes) -> list[Line]:
        """Lines on a JPEG or PNG image, in any order. May raise anything: the page fails, the server goes on."""
