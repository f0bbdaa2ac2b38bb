"""How large to draw a page: plain arithmetic, done before any pixel is made."""

from math import isfinite, sqrt

from app.errors import PageDamaged, PageTooLarge

MAX_ZOOM = 4.0
"""Pixels a point (288 DPI): a label is not blown up to the size of a sheet. 3 pt print is read at it; beyond it coarse
scans lose the spaces between their words."""
MAX_ASPECT = 4.0
"""Pages longer than this many times their width are drawn as wide as one of this shape: till rolls stay legible."""
MIN_SIDE_PIXELS = 16
"""Below it nothing can be read."""
MAX_SIDE_PIXELS = 16_384
"""Well inside what JPEG can hold (65,500)."""


def zoom(size: tuple[float, float], longest_side_pixels: int, max_pixels: int, max_zoom: float = MAX_ZOOM) -> float:
    """Pixels a point for a page of `size` points (as shown), so that its longest side gets `longest_side_pixels`.

    Drawn smaller where that passes `max_pixels` or `max_zoom`. Raises `PageTooLarge` for a strip that would be thinner
    than `MIN_SIDE_PIXELS` within the limits, `PageDamaged` for a page without area.
    """
    short, long = sorted(size)
    if not (isfinite(long) and short > 0):
        raise PageDamaged("the page has no area")
    fitting = max(longest_side_pixels / long, longest_side_pixels / (MAX_ASPECT * short))
    wanted = max(min(fitting, max_zoom), MIN_SIDE_PIXELS / short)
    allowed = min(wanted, MAX_SIDE_PIXELS / long, sqrt(max_pixels / (long * short)))
    if round(short * allowed) < MIN_SIDE_PIXELS:
        raise PageTooLarge(
            f"the page is {long / short:.0f} times as long as wide: no legible image of it fits the limits"
        )
    return allowed
