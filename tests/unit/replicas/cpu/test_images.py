import base64
import io
import zlib

import pytest
from PIL import Image

from app.replicas.cpu.errors import InvalidRequest
from app.replicas.cpu.images import MAX_IMAGE_PIXELS, decode_image
from tests.pages import BODY_SIZE, data_url, draw_page, encode

PAGE = draw_page([("Hello", BODY_SIZE)], size=(300, 200))


@pytest.mark.parametrize(("media_format", "media_type"), [("JPEG", "image/jpeg"), ("PNG", "image/png")])
def test_a_sound_image_passes_unchanged(media_format: str, media_type: str) -> None:
    image = encode(PAGE, media_format)
    assert decode_image(data_url(image, media_type)) == image


def test_transparent_paper_becomes_white() -> None:
    ink = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    ink.putpixel((5, 5), (0, 0, 0, 255))
    with Image.open(io.BytesIO(decode_image(data_url(encode(ink, "PNG"), "image/png")))) as page:
        assert page.mode == "RGB"
        assert page.getpixel((0, 0)) == (255, 255, 255)
        assert page.getpixel((5, 5)) == (0, 0, 0)


def _bomb() -> bytes:
    """A small PNG whose header promises more pixels than allowed."""
    header = b"IHDR" + (MAX_IMAGE_PIXELS // 1000 + 1).to_bytes(4) + (1000).to_bytes(4) + bytes([1, 0, 0, 0, 0])
    return (
        b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4) + header + zlib.crc32(header).to_bytes(4) + b"\0\0\0\0IDAT5\xaf\x06\x1e"
    )


@pytest.mark.parametrize(
    ("url", "detail"),
    [
        ("https://example.org/page.png", "data: URL"),
        ("data:image/gif;base64,R0lGODlh", "data: URL"),
        ("data:image/jpeg;base64,%%%", "base64"),
        ("data:image/jpeg;base64,", "no JPEG and no PNG"),
        (data_url(b"nonsense"), "no JPEG and no PNG"),
        (data_url(encode(PAGE)[:-900]), "truncated"),
        (data_url(encode(PAGE, "PNG")[:-200]), "can't be decoded"),
        (data_url(encode(PAGE, "PNG").replace(b"IDAT", b"JUNK")), "can't be decoded"),
        (data_url(_bomb()), "pixels"),
        ("data:image/png;base64," + base64.b64encode(encode(PAGE, "GIF")).decode(), "no JPEG and no PNG"),
    ],
)
def test_what_is_no_whole_image_is_refused(url: str, detail: str) -> None:
    with pytest.raises(InvalidRequest, match=detail):
        decode_image(url)
