"""The type of a file by its first bytes, never by its name or its declared type."""

import re

from app.documents.media_types import PDF
from app.errors import UnsupportedType

HEAD_BYTES = 1024
"""How far into a file its type is looked for: readers accept a PDF header anywhere in here (PDF 1.7, appendix H)."""

_PDF_HEADER = b"%PDF-"
_IMAGES = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"II[*+]\0|MM\0[*+]", "image/tiff"),  # * or, with offsets of 64 bits, +
    (rb"RIFF.{4}WEBP", "image/webp"),
    (rb"GIF8[79]a", "image/gif"),
    # Two letters would be text too; what follows are a length, four zeros, an offset and the length of a known header.
    (rb"BM.{4}\0{4}.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0", "image/bmp"),
)
_OTHERS = (
    (rb".{4}ftyp(heic|heix|hevc|mif1|msf1)", "a HEIC image"),
    (rb".{4}ftypavi[fs]", "an AVIF image"),
    (rb"\0\0\0\x0cjP  \r\n|\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (rb"8BPS", "a Photoshop image"),
    (rb"AT&TFORM", "a DjVu document"),
    (rb"%!PS", "a PostScript document"),
    (rb"PK\x03\x04", "a ZIP archive or an Office document"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an older Office document"),
    (rb"\{\\rtf", "an RTF document"),
    (rb"\x1f\x8b", "a gzip archive"),
    (rb"RIFF", "a sound, a film or another RIFF file"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def media_type(head: bytes) -> str:
    """Media type of the file that begins with `head` (its first `HEAD_BYTES`).

    Raises `UnsupportedType`, which says what the file looks like where that can be told, and what is read.
    """
    image = _first_match(_IMAGES, head)
    if image is not None:
        return image
    kind = _first_match(_OTHERS, head)
    if kind is None and _PDF_HEADER in head:
        return PDF
    if kind is None:
        kind = "nothing known here" if _CONTROL.search(head) else "plain text"
    raise UnsupportedType(
        f"not a PDF and not an image: this looks like {kind}; read are PDF, PNG, JPEG, TIFF, WebP, GIF and BMP"
    )


def _first_match(kinds: tuple[tuple[bytes, str], ...], head: bytes) -> str | None:
    return next((kind for signature, kind in kinds if re.match(signature, head, re.DOTALL)), None)
