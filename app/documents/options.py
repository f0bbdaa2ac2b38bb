"""Options of `POST /documents`, parsed from form fields or the query string."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.documents.fairness import DEFAULT_PRIORITY
from app.documents.states import OnPageError
from app.errors import OptionInvalid, OptionUnknown

MAX_METADATA_BYTES = 4096
MAX_METADATA_DEPTH = 100
"""Objects and lists in each other: Python gives up reading or writing JSON at a depth that depends on who calls."""
MAX_PRIORITY = 7
MAX_TTL_SECONDS = 10 * 366 * 86_400
"""Ten years: what is kept longer belongs elsewhere."""
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What databases and UTF-8 don't take."""
_NUL_IN_JSON = re.compile(r"(?<!\\)(\\\\)*\\u0000")  # not behind an odd backslash, where it is six characters
_PRIORITIES = {str(level): level for level in range(MAX_PRIORITY + 1)}


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller asked for; None where nothing was said."""

    pages: str | None = None
    """Checked against the page count at intake."""
    profile: str | None = None
    priority: int = DEFAULT_PRIORITY
    """0 to 7, lower is more urgent (RFC 9218)."""
    password: str | None = field(default=None, repr=False)
    metadata: dict[str, Any] = field(default_factory=dict)
    on_page_error: OnPageError = OnPageError.KEEP
    ttl: int | None = None
    """Seconds to keep the document after its end."""

    @classmethod
    def parse(cls, fields: Mapping[str, str]) -> "Options":
        """Raises `OptionUnknown` and `OptionInvalid`; an empty value means not given."""
        unknown = sorted(set(fields) - set(cls.__dataclass_fields__))
        if unknown:
            raise OptionUnknown(f"unknown option {unknown[0]!r}; known: {', '.join(cls.__dataclass_fields__)}")
        given = {name: value for name, value in fields.items() if value != ""}
        for name, value in given.items():
            if _NO_TEXT.search(value):
                raise OptionInvalid(f"{name} holds a character that is no text", option=name)
        return cls(
            pages=given.get("pages"),
            profile=None if given.get("profile") == "auto" else given.get("profile"),
            priority=_priority(given.get("priority")),
            password=given.get("password"),
            metadata=_metadata(given.get("metadata")),
            on_page_error=_on_page_error(given.get("on_page_error")),
            ttl=_ttl(given.get("ttl")),
        )


def _priority(text: str | None) -> int:
    if text is None:
        return DEFAULT_PRIORITY
    if text not in _PRIORITIES:
        raise OptionInvalid(f"priority is a number from 0 to {MAX_PRIORITY}", option="priority")
    return _PRIORITIES[text]


def _metadata(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    if len(text.encode()) > MAX_METADATA_BYTES:
        raise OptionInvalid("metadata is too long", option="metadata", limit=MAX_METADATA_BYTES)
    try:
        value = json.loads(text)
        # Python reads what is no JSON (NaN, 1e999) or no text (half a surrogate), and nothing after us could write it.
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode()
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise OptionInvalid("metadata is a JSON object", option="metadata")
    if _is_deeper(value, MAX_METADATA_DEPTH):
        raise OptionInvalid("metadata is nested too deep", option="metadata", limit=MAX_METADATA_DEPTH)
    if _NUL_IN_JSON.search(written):
        raise OptionInvalid("metadata holds a character that is no text", option="metadata")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects lie within each other on more than so many levels."""
    outer = [value]
    for _ in range(levels):
        outer = [inner for one in outer for inner in _values(one) if isinstance(inner, dict | list)]
    return bool(outer)


def _values(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _on_page_error(text: str | None) -> OnPageError:
    try:
        return OnPageError.KEEP if text is None else OnPageError(text)
    except ValueError:
        raise OptionInvalid(f"on_page_error is one of {', '.join(OnPageError)}", option="on_page_error") from None


def _ttl(text: str | None) -> int | None:
    if text is None:
        return None
    # Ten digits at most: int() refuses thousands of them with an error of its own.
    if not re.fullmatch(r"[0-9]{1,10}", text) or not 1 <= int(text) <= MAX_TTL_SECONDS:
        raise OptionInvalid(f"ttl is a number of seconds from 1 to {MAX_TTL_SECONDS}", option="ttl")
    return int(text)
