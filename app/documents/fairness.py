"""Stride scheduling on two levels: tenants, then documents.

Each tenant and each document has a *pass*, an integer virtual time. The smallest pass is served next and moves on by
its stride, the inverse of its weight. So a newcomer, which joins one stride behind the smallest pass in use, waits
for about one page, however long the others' queues are (Waldspurger and Weihl, "Stride Scheduling", 1995).
"""

from collections.abc import Iterable

SCALE = 1 << 10
TENANT_STRIDE = SCALE
DEFAULT_PRIORITY = 3


def stride(priority: int) -> int:
    """Stride of a document of `priority` 0 (most urgent) to 7: weight is 2^(3 - priority), scaled to integers."""
    return SCALE << priority >> DEFAULT_PRIORITY


def joining_pass(own: int, step: int, in_use: Iterable[int], last: int) -> int:
    """Pass of a tenant or document of stride `step` that becomes claimable: one stride behind the smallest in use.

    At the smallest itself, weights would mean nothing among documents of one page, and a stream of newcomers would
    starve whoever is there. `in_use`: passes of the others that are claimable now. Where there is none, virtual time
    stands at `last`, the largest pass known: a newcomer who started at 0 would starve everybody who was served before.
    """
    return max(own, min(in_use, default=last) + step)
