"""The page's body text, which headings are measured against."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, median_low

from app.replicas.cpu.rows import Row

_LEVEL_SIZES = (1.7, 1.33, 1.2)
"""Print sizes of headings in body sizes, by level. LaTeX: title 1.73 and more, section 1.44, subsection 1.2; HTML: 2,
1.5, 1.17; Word: 2.5, 1.45, 1.18. Boxes of one size differ by 15 % in height, seldom by 30."""
_BOTH_WAYS = 1.1
"""A heading's boxes are higher and its characters wider: a box that is tall by accident is not wide as well."""
_DESCENDING = frozenset("gjpqyQ,;()[]")
_WITHOUT_DESCENDERS = 1.12
"""What the box of a row lacks in height that has none of these; rows of body text have some."""
_MIN_HEADING_LETTERS = 3
_OWN_ROOM = 1.15
"""Distance, in pitches, of a heading from the body text above it: larger print does not fit into the body's pitch."""
_MAX_PITCH = 2.5
"""In line heights; double spacing is 2.2."""


@dataclass(frozen=True, slots=True)
class Body:
    """Measures of the body text in pixels: medians over characters, so that headings and numbers do not move them."""

    height: float
    character_width: float
    pitch: float
    """From row to row."""

    @classmethod
    def of(cls, regions: Sequence[Sequence[Row]]) -> "Body":
        """Of regions that hold at least one row together."""
        rows = [row for region in regions for row in region]
        height = max(1.0, median(row.height for row in rows for _ in row.text))
        distances = [below.centre - above.centre for region in regions for above, below in pairwise(region)]
        return cls(
            height=height,
            character_width=median(row.character_width for row in rows for _ in row.text),
            pitch=min(median_low(distances or [height]), _MAX_PITCH * height),
        )

    def heading_level(self, row: Row) -> int:
        """Level that the row's size asks for; 0 is body text."""
        if not row.is_prose or sum(map(str.isalpha, row.text)) < _MIN_HEADING_LETTERS:
            return 0
        higher, wider = _full_height(row) / self.height, row.character_width / self.character_width
        if min(higher, wider) < _BOTH_WAYS:
            return 0
        size = (higher * wider**2) ** (1 / 3)  # widths vary less than heights
        return next((level for level, least in enumerate(_LEVEL_SIZES, start=1) if size > least), 0)

    def heading_levels(self, rows: Sequence[Row]) -> list[int]:
        """Levels of rows that follow each other; what stands in the middle of body text is none."""
        levels: list[int] = []
        for index, row in enumerate(rows):
            level = self.heading_level(row)
            if index and not levels[-1] and row.centre - rows[index - 1].centre < _OWN_ROOM * self.pitch:
                level = 0
            levels.append(level)
        return levels


def _full_height(row: Row) -> float:
    return row.height if _DESCENDING.intersection(row.text) else row.height * _WITHOUT_DESCENDERS
