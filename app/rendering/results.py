"""What rendering hands out."""

from dataclasses import dataclass

from app.documents.records import Warn


@dataclass(frozen=True, slots=True)
class Inspection:
    """A file that can be read."""

    pages: int
    """At least 1."""
    warnings: tuple[Warn, ...] = ()
    """Codes: `file_repaired`, `xfa_form`, `first_frame_only`."""


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
    """Width and height of the page as shown (CropBox, /Rotate, EXIF orientation), in points.

    Those of an image follow from the resolution that it states, else from 96 DPI.
    """
    warnings: tuple[Warn, ...] = ()
    """Codes: `page_incomplete`."""
    seconds: float = 0.0
    """Wall time of drawing and encoding, without the wait for a worker."""
    blank: bool = False
    """Whether nothing stands on the page; never of one that is incomplete."""
