"""Text hygiene: what may stand in a page's text, a file name, a warning."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean_text(text: str) -> str:
    """`text` without control characters (newline and tab stay) and lone surrogates; line ends become newlines."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def base_name(name: str) -> str:
    """The last part of an uploaded file's name: names are text, never paths."""
    return clean_text(name).replace("\n", " ").replace("\\", "/").rsplit("/", 1)[-1].strip()[:255]
