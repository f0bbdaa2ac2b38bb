"""Page images drawn for the tests, and how requests carry them."""

import base64
import io
from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

BODY_SIZE = 30
"""Font size in pixels: 11 pt at 200 DPI."""


def draw_page(lines: Sequence[tuple[str, int]], *, size: tuple[int, int] = (1400, 700)) -> Image.Image:
    """White paper with `lines` of (text, font size in pixels) from top to bottom at one and a half times their size."""
    page = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(page)
    y = 60.0
    for text, font_size in lines:
        pen.text((80, y), text, fill="black", font=ImageFont.load_default(font_size))
        y += font_size * 1.5
    return page


def encode(image: Image.Image, media_format: str = "JPEG") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, media_format, quality=90)
    return buffer.getvalue()


def data_url(image: bytes, media_type: str = "image/jpeg") -> str:
    return f"data:{media_type};base64,{base64.b64encode(image).decode()}"


def chat_body(url: str, **fields: Any) -> dict[str, Any]:
    """A chat-completions request with a prompt and one image."""
    content = [{"type": "text", "text": "Read this page."}, {"type": "image_url", "image_url": {"url": url}}]
    return {"messages": [{"role": "user", "content": content}], **fields}
