"""Types by content."""

import pytest

from app.errors import UnsupportedType
from app.intake.file_type import PDF, media_type


@pytest.mark.parametrize("head", [b"%PDF-1.7\n", b"\xef\xbb\xbf%PDF-2.0", b"\x00junk" * 200 + b"%PDF-1.4"])
def test_a_pdf_is_known_by_a_header_within_its_first_kibibyte(head: bytes) -> None:
    assert media_type(head) == PDF


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "JPEG"),
        (b"\x89PNG\r\n\x1a\n\x00", "PNG"),
        (b"II*\x00\x08", "TIFF"),
        (b"PK\x03\x04\x14\x00stored.pdf%PDF-1.7", "ZIP archive or an Office document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "older Office document"),
        ("Liebe Grüße,\r\n\tein Brief".encode(), "plain text"),
        (b'{"url": "https://example.org/a.pdf"}', "plain text"),
        (b"\x00\x01\x02\x03", "nothing known"),
    ],
)
def test_anything_else_is_refused_and_named(head: bytes, kind: str) -> None:
    with pytest.raises(UnsupportedType, match=f"not a PDF.*{kind}"):
        media_type(head)
