"""Checks that every profile makes of an answer."""

from app.documents.text import clean_text
from app.errors import AnswerTruncated, AnswerUnparsable


def complete_text(text: str, finish_reason: str) -> str:
    """The answer's text, cleaned, if the model itself ended it: HTTP 200 alone is not success.

    Raises `AnswerTruncated` and `AnswerUnparsable`.
    """
    if finish_reason == "length":
        raise AnswerTruncated(f"the answer was cut at the token limit after {len(text)} characters")
    if finish_reason != "stop":
        raise AnswerUnparsable(f"the answer ended with finish_reason {finish_reason[:40]!r}, not with stop")
    return clean_text(text).strip()
