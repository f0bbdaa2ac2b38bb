"""From the upright lines that an engine found to Markdown: columns, headings, paragraphs, lists, tables."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise

from app.documents.text import clean_text
from app.replicas.cpu.body import Body
from app.replicas.cpu.columns import regions_of
from app.replicas.cpu.engine import Line
from app.replicas.cpu.markers import as_markdown, is_item
from app.replicas.cpu.paragraphs import join, join_texts, paragraphs_of
from app.replicas.cpu.rows import Row, rows_of
from app.replicas.cpu.tables import Table, split_tables

_MAX_HEADING_ROWS = 3
_MAX_HEADING_CHARACTERS = 200
_PARAGRAPH_GAP = 1.35
"""In pitches of the body; centres of rows are off by 0.1 at most."""
_UNENDED = re.compile(r"[\w,;-]$")


class Kind(Enum):
    HEADING = auto()
    PARAGRAPH = auto()
    ITEM = auto()
    TABLE = auto()
    CELLS = auto()


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the page in Markdown."""

    kind: Kind
    text: str


def markdown(lines: Iterable[Line]) -> str:
    """The page's text. No character of the lines is lost except line-end hyphens and what stood for a bullet.

    Line boxes are in pixels of one upright page. Blocks are parted by an empty line, items of a list by a line end.
    """
    regions = [rows_of(region) for region in regions_of([line for line in lines if line.text.strip()])]
    if not regions:
        return ""
    body = Body.of(regions)
    blocks: list[Block] = []
    for region in regions:
        _append(blocks, list(_blocks(region, body)))
    return clean_text(_joined(blocks))


def _append(blocks: list[Block], following: Sequence[Block]) -> None:
    """Add the blocks of the next region; a paragraph that goes on there stays one."""
    if blocks and _goes_on(blocks[-1], following[0]):
        blocks[-1] = replace(blocks[-1], text=join_texts(blocks[-1].text, following[0].text))
        following = following[1:]
    blocks += following


def _goes_on(last: Block, first: Block) -> bool:
    return (
        last.kind in (Kind.PARAGRAPH, Kind.ITEM)
        and first.kind is Kind.PARAGRAPH
        and _UNENDED.search(last.text) is not None
        and first.text[0].islower()
    )


def _joined(blocks: Sequence[Block]) -> str:
    text = blocks[0].text
    for above, below in pairwise(blocks):
        is_list = above.kind is Kind.ITEM and below.kind is Kind.ITEM
        text += ("\n" if is_list else "\n\n") + below.text
    return text


def _blocks(rows: Sequence[Row], body: Body) -> Iterator[Block]:
    for part in split_tables(rows):
        if isinstance(part, Table):
            yield Block(Kind.TABLE, part.markdown())
            continue
        for level, group in _groups(part, body):
            yield from _texts(group, level)


def _groups(rows: Sequence[Row], body: Body) -> list[tuple[int, list[Row]]]:
    """Rows that follow each other at the page's pitch, by heading level; a row of several cells stands alone."""
    levels = body.heading_levels(rows)
    groups = [(levels[0], [rows[0]])]
    for (previous, row), level in zip(pairwise(rows), levels[1:], strict=True):
        gap = _PARAGRAPH_GAP * body.pitch * max(row.height / body.height, 1.0)
        is_near = row.centre - previous.centre <= gap
        if previous.is_prose and row.is_prose and is_near and level == groups[-1][0]:
            groups[-1][1].append(row)
        else:
            groups.append((level, [row]))
    return groups


def _texts(group: Sequence[Row], level: int) -> Iterator[Block]:
    if level and len(group) <= _MAX_HEADING_ROWS and sum(len(row.text) for row in group) <= _MAX_HEADING_CHARACTERS:
        yield Block(Kind.HEADING, f"{'#' * level} {join(group)}")
    elif not group[0].is_prose:
        yield Block(Kind.CELLS, group[0].text)
    else:
        for text in map(join, paragraphs_of(group)):
            yield Block(Kind.ITEM, as_markdown(text)) if is_item(text) else Block(Kind.PARAGRAPH, text)
