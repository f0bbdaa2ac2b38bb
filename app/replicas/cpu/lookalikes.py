"""Signs that the recogniser takes for the letters they look like."""

import re

_LETTERS: dict[str, str | int | None] = {"∪": "U"}
"""Seen with PP-OCRv6 tiny on capitals of 20 points and more."""
_WORD = re.compile(rf"[^\W\d_]*[{''.join(_LETTERS)}][^\W\d_{''.join(_LETTERS)}]*")
_MIN_LETTERS = 4
"""Letters around the sign that make it part of a word; a formula has one-letter names on both sides."""


def with_letters(text: str) -> str:
    """`text` with a letter for each such sign in the middle of a word."""
    return _WORD.sub(_with_letters, text)


def _with_letters(match: re.Match[str]) -> str:
    word = match[0]
    if sum(map(str.isalpha, word)) < _MIN_LETTERS:
        return word
    return word.translate(str.maketrans(_LETTERS))
