"""How long a call takes: the same for all, drawn from a distribution, or told by its image."""

import math
import random
import zlib
from collections.abc import Callable

from tests.standins.call import Call

ServiceTime = Callable[[Call], float]
"""Seconds that a call takes."""


def lognormal(
    chance: random.Random, mean: float, variation: float, least: float = 0.0, most: float = math.inf
) -> ServiceTime:
    """Seconds of this mean and coefficient of variation, clipped to `least` and `most`."""
    variance = math.log(1 + variation**2)
    centre = math.log(mean) - variance / 2
    return lambda _: min(most, max(least, chance.lognormvariate(centre, math.sqrt(variance))))


def bimodal(chance: random.Random, usual: float, rare: float, rare_share: float) -> ServiceTime:
    """`rare` seconds for this share of the calls, `usual` for the others."""
    return lambda _: rare if chance.random() < rare_share else usual


def by_image(_: random.Random, least: float, most: float) -> ServiceTime:
    """Between `least` and `most`, told by the request: a page takes as long on every replica and each time."""
    return lambda call: least + (most - least) * zlib.crc32(call.body) / 2**32


_DISTRIBUTIONS: dict[str, Callable[..., ServiceTime]] = {
    "lognormal": lognormal,
    "bimodal": bimodal,
    "image": by_image,
}


def parse_service_time(text: str, chance: random.Random) -> float | ServiceTime:
    """`0.25`, `lognormal:MEAN,CV[,LEAST[,MOST]]`, `bimodal:USUAL,RARE,SHARE` or `image:LEAST,MOST`, in seconds.

    Raises `ValueError`.
    """
    name, colon, numbers = text.partition(":")
    if not colon:
        return float(text)
    try:
        return _DISTRIBUTIONS[name](chance, *map(float, numbers.split(",")))
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"no service time: {text!r}") from None
