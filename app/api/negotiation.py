"""Which of the media types that a route can produce the client likes best (RFC 9110, section 12.5.1)."""

from collections.abc import Sequence

from app.errors import NotAcceptable


def preferred(accept: str | None, offers: Sequence[str]) -> str:
    """The offer with the highest quality; the first offer on a tie and for `*/*`. Raises `NotAcceptable`."""
    if not accept or not accept.strip():
        return offers[0]
    ranges = [_parse(part) for part in accept.split(",") if part.strip()]
    best = max(offers, key=lambda offer: _quality(offer, ranges))
    if _quality(best, ranges) == 0:
        raise NotAcceptable(f"this resource comes as {', '.join(offers)}")
    return best


def _parse(part: str) -> tuple[str, float]:
    media_range, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = min(1.0, max(0.0, float(value)))
            except ValueError:
                quality = 0.0
    return media_range, quality


def _quality(offer: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Quality of the most specific range that matches: the exact type, then `type/*`, then `*/*`."""
    for pattern in (offer, offer.split("/")[0] + "/*", "*/*"):
        for media_range, quality in ranges:
            if media_range == pattern:
                return quality
    return 0.0
