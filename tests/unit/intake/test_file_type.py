"""Types by content."""

from io import BytesIO

import pytest
from PIL import Image

from app.documents.media_types import PDF
from app.errors import UnsupportedType
from app.intake.file_type import HEAD_BYTES, media_type


@pytest.mark.parametrize("head", [b"%PDF-1.7\n", b"\xef\xbb\xbf%PDF-2.0", b"\x00junk" * 200 + b"%PDF-1.4"])
def test_a_pdf_is_known_by_a_header_within_its_first_kibibyte(head: bytes) -> None:
    assert media_type(head) == PDF


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0", "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"\xff\xd8\xff\xe1\0\x10Exif %PDF-1.7", "image/jpeg"),
        (b"II*\0\x08", "image/tiff"),
        (b"MM\0*\0", "image/tiff"),
        (b"II+\0\x08", "image/tiff"),
        (b"RIFF\x0a\0\0\0WEBPVP8 ", "image/webp"),
        (b"GIF89a", "image/gif"),
    ],
)
def test_an_image_is_known_by_its_signature(head: bytes, kind: str) -> None:
    assert media_type(head) == kind


@pytest.mark.parametrize("name", ["PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP"])
def test_what_pillow_writes_is_known(name: str) -> None:
    file = BytesIO()
    Image.new("RGB", (30, 20), "white").save(file, name)
    assert media_type(file.getvalue()[:HEAD_BYTES]) == f"image/{name.lower()}"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"PK\x03\x04\x14\x00stored.pdf%PDF-1.7", "ZIP archive or an Office document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "older Office document"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC"),
        (b"RIFF\x0a\0\0\0WAVEfmt ", "RIFF file"),
        ("Liebe Grüße,\r\n\tein Brief".encode(), "plain text"),
        (b"BMW is a maker of cars, and this is a text on them", "plain text"),
        (b'{"url": "https://example.org/a.pdf"}', "plain text"),
        (b"\x00\x01\x02\x03", "nothing known"),
    ],
)
def test_anything_else_is_refused_and_named_with_what_is_read(head: bytes, kind: str) -> None:
    with pytest.raises(UnsupportedType, match=f"not a PDF.*{kind}.*; read are PDF, PNG, JPEG, TIFF, WebP, GIF and BMP"):
        media_type(head)
