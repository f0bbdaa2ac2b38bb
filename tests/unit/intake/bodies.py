"""Request bodies as clients send them."""

from collections.abc import AsyncIterator

PDF_BYTES = b"%PDF-1.7\nsome pages\n%%EOF\n"
BOUNDARY = "----caseboundary7d1"
FORM = f"multipart/form-data; boundary={BOUNDARY}"


def part(disposition: str | bytes, data: bytes, *headers: str) -> bytes:
    """One part: `disposition` is what follows `form-data; `."""
    raw = disposition if isinstance(disposition, bytes) else disposition.encode()
    extra = "".join(f"\r\n{header}" for header in headers).encode()
    return b"Content-Disposition: form-data; " + raw + extra + b"\r\n\r\n" + data


def file_part(data: bytes = PDF_BYTES, filename: str = "a.pdf", field: str = "file") -> bytes:
    return part(f'name="{field}"; filename="{filename}"', data, "Content-Type: application/pdf")


def field_part(name: str, value: str) -> bytes:
    return part(f'name="{name}"', value.encode())


def form(*parts: bytes, preamble: bytes = b"", epilogue: bytes = b"\r\n") -> bytes:
    delimiter = b"--" + BOUNDARY.encode()
    return preamble + b"".join(delimiter + b"\r\n" + each + b"\r\n" for each in parts) + delimiter + b"--" + epilogue


def split(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


async def chunks(body: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    for chunk in split(body, size):
        yield chunk
