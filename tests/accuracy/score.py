"""How close what was read is to what stands on the page."""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

_MARKUP = re.compile(r"^#+ |^\|[ |:-]+\|$|^\| | \|$| \|(?= )|\\(?=\|)", re.MULTILINE)
_FINDABLE_CHARACTERS = 15
_SIGNS = str.maketrans({"•": "-", "·": "-", "’": "'", "‘": "'"})


def character_error_rate(blocks: Sequence[str], markdown: str) -> float:
    """Characters to insert, delete or replace for each one on the page.

    After NFKC; white space and Markdown's signs do not count, nor which of the typographer's variants of a sign it is.
    """
    truth = _plain(" ".join(blocks))
    return Levenshtein.distance(truth, _plain(_MARKUP.sub("", markdown))) / len(truth)


def blocks_in_order(blocks: Sequence[str], markdown: str) -> float:
    """Share of neighbouring blocks that were read one after the other; page numbers and the like don't count."""
    text = _plain(_MARKUP.sub("", markdown))
    starts = [_start(_plain(block), text) for block in blocks if len(block) >= _FINDABLE_CHARACTERS]
    return sum(first < second for first, second in pairwise(starts)) / (len(starts) - 1)


def _start(block: str, text: str) -> int:
    """Where the block's opening is found in the text, as well as it can be."""
    found = fuzz.partial_ratio_alignment(block[:60], text)
    return found.dest_start if found else -1


def _plain(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).translate(_SIGNS).split())
