"""Image bytes out of a data: URL, checked before any engine sees them.

OCR engines forgive too much: faster-paddle reads a truncated JPEG as an empty page and transparent paper as black.
"""

import base64
import binascii
import io

from PIL import Image, UnidentifiedImageError

from app.replicas.cpu.errors import InvalidRequest

MAX_IMAGE_PIXELS = 50_000_000
"""Twice the page images of pagefleet; about 150 MB decoded."""

_PREFIXES = ("data:image/jpeg;base64,", "data:image/png;base64,")
_FORMATS = ("JPEG", "PNG")


def decode_image(url: str) -> bytes:
    """The encoded image that `url` holds, whole and opaque. Raises `InvalidRequest`."""
    encoded = _payload(url)
    try:
        with Image.open(io.BytesIO(encoded), formats=_FORMATS) as image:
            if image.width * image.height > MAX_IMAGE_PIXELS:
                raise InvalidRequest(f"the image has more than {MAX_IMAGE_PIXELS} pixels", "messages")
            image.load()
            return _on_white(image) if image.has_transparency_data else encoded
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise InvalidRequest(f"the image can't be decoded: {_reason(error)}", "messages") from error


def _payload(url: str) -> bytes:
    if not url.startswith(_PREFIXES):
        raise InvalidRequest("the image_url is a base64 data: URL of image/jpeg or image/png", "messages")
    try:
        return base64.b64decode(url.partition(",")[2], validate=True)
    except binascii.Error as error:
        raise InvalidRequest(f"the image_url is not valid base64: {error}", "messages") from error


def _on_white(image: Image.Image) -> bytes:
    page = Image.new("RGBA", image.size, "white")
    page.alpha_composite(image.convert("RGBA"))
    opaque = io.BytesIO()
    page.convert("RGB").save(opaque, "PNG", compress_level=1)
    return opaque.getvalue()


def _reason(error: Exception) -> str:
    return "it is no JPEG and no PNG" if isinstance(error, UnidentifiedImageError) else str(error)
