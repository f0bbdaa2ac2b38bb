"""The Content-Disposition header and the file name in it."""

import re
from urllib.parse import unquote

from python_multipart.multipart import parse_options_header

from app.documents.text import base_name

FALLBACK_NAME = "document"
_MAX_HEADER_BYTES = 8192
# The parser of RFC 7578 drops this form (RFC 8187), which that standard forbids and several HTTP clients send.
_EXTENDED = re.compile(r";\s*filename\*\s*=\s*\"?(utf-8|iso-8859-1)'[^']*'([^;\s\"]+)", re.IGNORECASE)


def disposition(header: bytes) -> dict[str, str]:
    """Parameters of a Content-Disposition header, `name` and `filename` among them; `filename*` wins over `filename`.

    Text outside ASCII is read as UTF-8, which browsers and curl send as it is, and as Latin-1 where it can't be UTF-8.
    """
    value = header[:_MAX_HEADER_BYTES].decode("latin-1")
    parameters = {_text(name): _text(text) for name, text in parse_options_header(value)[1].items()}
    extended = _EXTENDED.search(value)
    if extended is not None:
        parameters["filename"] = unquote(extended[2], extended[1], errors="replace")
    return parameters


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def clean_filename(name: str | None) -> str:
    """The name to show for an uploaded file: its last part, never empty and never `.` or `..`."""
    cleaned = base_name(name or "")
    return cleaned if cleaned.strip(". ") else FALLBACK_NAME
