"""Stride scheduling on two levels: tenants, then documents.

Each tenant and each document has a *pass*, an integer virtual time. The smallest pass is served next and moves on by
its stride, the inverse of its weight. So a newcomer, which joins at the smallest pass in use, waits for about one
page, however long the others' queues are (Waldspurger and Weihl, "Stride Scheduling", 1995).
"""

from collections.abc import Iterable

SCALE = 1 << 10
TENANT_STRIDE = SCALE
DEFAULT_PRIORITY = 3


def stride(priority: int) -> int:
    """Stride of a document of `priority` 0 (most urgent) to 7: weight is 2^(3 - priority), scaled to integers."""
    return SCALE << priority >> DEFAULT_PRIORITY


def joining_pass(own: int, in_use: Iterable[int], last: int) -> int:
    """Pass of a tenant or document that becomes claimable.

    `in_use`: passes of the others that are claimable now. Where there is none, virtual time stands at `last`, the
    largest pass known: without that, a newcomer on an idle service would start at 0 and, until it had caught up, starve
    everybody who was served before.
    """
    return max(own, min(in_use, default=last))
