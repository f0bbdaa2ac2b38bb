"""What rendering hands out."""

from dataclasses import dataclass

from app.documents.records import Warn


@dataclass(frozen=True, slots=True)
class Inspection:
    """A file that can be read."""

    pages: int
    """At least 1."""
    warnings: tuple[Warn, ...] = ()
    """Codes: `file_repaired`, `xfa_form`."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A page as an encoded image."""

    image_base64: bytes
    """Base64 text without line breaks, fit to stand in JSON as it is."""
    media_type: str
    width: int
    """Pixels."""
    height: int
    """Pixels."""
    size: tuple[float, float]
    """Width and height of the page as shown (CropBox, /Rotate), in points."""
    warnings: tuple[Warn, ...] = ()
    """Codes: `page_incomplete`."""
    seconds: float = 0.0
    """Wall time of drawing and encoding, without the wait for a worker."""
