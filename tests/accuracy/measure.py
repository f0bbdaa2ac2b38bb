"""A kind of pages, read and compared with what stands on them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import mean

from tests.accuracy.kinds import Kind
from tests.accuracy.score import blocks_in_order, character_error_rate
from tests.pages import encode

Reader = Callable[[bytes], Awaitable[tuple[str, float]]]
"""A JPEG image to its text and the CPU seconds that it took."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over the pages of a kind; `blocks_in_order` is that of its worst page."""

    error_percent: float
    blocks_in_order: float
    cpu_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.error_percent:6.2f} % of characters wrong, {self.blocks_in_order:4.0%} of blocks in order, "
            f"{self.cpu_seconds:5.2f} CPU s a page"
        )


async def measure(kind: Kind, read: Reader) -> Measured:
    errors, orders, seconds = [], [], []
    for sheet in kind.sheets():
        text, cpu_seconds = await read(encode(sheet.image))
        errors.append(100 * character_error_rate(sheet.blocks, text))
        orders.append(blocks_in_order(sheet.blocks, text))
        seconds.append(cpu_seconds)
    return Measured(mean(errors), min(orders), mean(seconds))
