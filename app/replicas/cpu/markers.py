"""Markers that list items begin with."""

import re

_BULLET = re.compile(r"(?:[•●○▪■◦‣∙·]\s*|[-–—*]\s+)(?=\S)")
_NUMBER = re.compile(r"(\d{1,3})[.)]\s+(?=\S)")
_BARE = re.compile(r"[•●○▪■◦‣∙·–—*-]|\d{1,3}[.)]|\(?[a-z][.)]")


def has_bullet(text: str) -> bool:
    return _BULLET.match(text) is not None


def number_of(text: str) -> int | None:
    """The number of an item that begins with `7.` or `7)`."""
    match = _NUMBER.match(text)
    return int(match[1]) if match else None


def is_item(text: str) -> bool:
    return has_bullet(text) or number_of(text) is not None


def is_marker(text: str) -> bool:
    """Whether the text is a marker and nothing else."""
    return _BARE.fullmatch(text.strip()) is not None


def as_markdown(item: str) -> str:
    """An item with Markdown's own bullet; numbers stay as they are."""
    return _BULLET.sub("- ", item, count=1) if has_bullet(item) else item
