"""The type of a file by its first bytes, never by its name or its declared type."""

import re

from app.errors import UnsupportedType

PDF = "application/pdf"
HEAD_BYTES = 1024
"""How far into a file its type is looked for: readers accept a PDF header anywhere in here (PDF 1.7, appendix H)."""

_PDF_HEADER = b"%PDF-"
_OTHERS = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a WebP image or another RIFF file"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an older Office document"),
    (b"{\\rtf", "an RTF document"),
    (b"\x1f\x8b", "a gzip archive"),
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def media_type(head: bytes) -> str:
    """Media type of the file that begins with `head` (its first `HEAD_BYTES`).

    Raises `UnsupportedType`, which says what the file looks like where that can be told.
    """
    kind = next((kind for signature, kind in _OTHERS if head.startswith(signature)), None)
    if kind is None and _PDF_HEADER in head:
        return PDF
    if kind is None:
        kind = "nothing known here" if _CONTROL.search(head) else "plain text"
    raise UnsupportedType(f"not a PDF: this looks like {kind}")
