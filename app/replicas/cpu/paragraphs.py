"""Where paragraphs and list items end, and how their rows are joined."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from app.replicas.cpu.markers import has_bullet, is_item, number_of
from app.replicas.cpu.rows import Row

_NARROWEST_COLUMN = 12.0
"""Width in line heights, about 30 characters: what is narrower is no column of prose but a list of short lines."""
_FIT_SLACK = 1.3
"""Words of wide letters take more room than their share of the row."""
_INDENT = 0.8
"""First-line indent in line heights; typesetters use 1 em and more."""
_HYPHENATED = re.compile(r"[^\W\d_]-$")
_SUSPENDED = re.compile(r"(?:und|oder|bzw|sowie|and|or|to|et|ou)\b")
"""After these words' forerunner a hyphen stands for what the words share: Vor- und Nachteile, pre- and post-war."""


def paragraphs_of(rows: Sequence[Row]) -> list[list[Row]]:
    """Parts rows that follow each other without a gap: before an item or an indented row, and after an early end."""
    right = max(max(row.right for row in rows), min(row.left for row in rows) + _NARROWEST_COLUMN * rows[0].height)
    paragraphs = [[rows[0]]]
    for index, (previous, row) in enumerate(pairwise(rows), start=1):
        paragraph = paragraphs[-1]
        hangs = is_item(paragraph[0].text) and row.left - paragraph[0].left > _INDENT * row.height
        if (
            _starts_item(row, paragraph)
            or _ends_early(previous, row, right)
            or (not hangs and _is_indented(rows, index))
        ):
            paragraphs.append([row])
        else:
            paragraph.append(row)
    return paragraphs


def join(rows: Sequence[Row]) -> str:
    """The text of the rows as one line; words that were hyphenated at a row's end are whole again."""
    text = rows[0].text
    for row in rows[1:]:
        text = join_texts(text, row.text)
    return text


def join_texts(text: str, following: str) -> str:
    if _HYPHENATED.search(text) and following[0].islower() and not _SUSPENDED.match(following):
        return text[:-1] + following
    if _is_wide(text[-1]) and _is_wide(following[0]):
        return text + following
    return f"{text} {following}"


def _starts_item(row: Row, paragraph: Sequence[Row]) -> bool:
    """A bullet always does; a number only where it goes on counting, since dates and sums wrap too."""
    if has_bullet(row.text):
        return True
    number, last = number_of(row.text), number_of(paragraph[0].text)
    return number is not None and last is not None and number == last + 1


def _ends_early(row: Row, following: Row, right: float) -> bool:
    """Whether the next row's first word would have fitted on this row: only the end of a paragraph leaves such room."""
    word = following.text[0] if _is_wide(following.text[0]) else following.text.split()[0]
    word_width = (following.right - following.left) * (len(word) + 1) / len(following.text)
    return right - row.right > word_width * _FIT_SLACK


def _is_indented(rows: Sequence[Row], index: int) -> bool:
    """Whether the row starts further right than both its neighbours; hanging indents stay with their first row."""
    if index + 1 >= len(rows):
        return False
    row = rows[index]
    return row.left - max(rows[index - 1].left, rows[index + 1].left) > _INDENT * row.height


def _is_wide(character: str) -> bool:
    """Chinese and Japanese characters and punctuation, which are written without spaces."""
    return unicodedata.east_asian_width(character) in "WF"
