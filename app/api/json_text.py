"""JSON as it is streamed."""

import json
from typing import Any

_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\u0085\u2028\u2029"}


def json_text(value: Any) -> str:
    """`value` as one line of JSON.

    The line ends of Unicode are legal in JSON and rare in text, but many clients split lines at them: they are escaped.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS)
