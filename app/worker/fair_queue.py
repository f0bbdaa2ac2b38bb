"""The order in which drawn pages go to lanes: the stride scheduling of the journal, applied again in memory.

Pages are claimed a little ahead of the lanes. Were they dispatched in the order of their claims, a newcomer would wait
behind every image that is already drawn; so the same two-level order decides again at dispatch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.documents.fairness import TENANT_STRIDE, stride
from app.documents.records import Claim

T = TypeVar("T")


@dataclass(slots=True)
class _Party:
    """A tenant or a document in the order.

    Unlike in the journal, a newcomer joins at virtual time itself and goes first among equals: it waits for the next
    free lane only. Whoever was overtaken so goes before later newcomers, and newcomers don't hold up virtual time: a
    stream of them can't starve anybody.
    """

    step: int
    """Stride."""
    pass_: int = 0
    since: int = 0
    """Turn at which it came to its pass."""
    served: bool = False
    overtaken: bool = False

    @property
    def rank(self) -> tuple[int, bool, bool, int, int]:
        return self.pass_, not self.overtaken, self.served and not self.overtaken, self.step, self.since

    def serve(self, turn: int, rivals: Iterable["_Party"]) -> None:
        for rival in rivals:
            rival.overtaken |= rival is not self and rival.pass_ == self.pass_
        self.pass_ += self.step
        self.since, self.served, self.overtaken = turn, True, False

    def join(self, turn: int, in_use: "Sequence[_Party]", known: Iterable["_Party"]) -> None:
        old_hands = [other for other in in_use if other.served]
        last = max((other.pass_ for other in known), default=0)
        self.pass_ = min((other.pass_ for other in old_hands or in_use), default=last)
        self.since = turn


@dataclass(slots=True)
class _DocumentQueue(_Party, Generic[T]):
    pages: dict[int, T] = field(default_factory=dict)


@dataclass(slots=True)
class _TenantQueue(_Party, Generic[T]):
    documents: dict[str, _DocumentQueue[T]] = field(default_factory=dict)

    @property
    def waiting(self) -> list[_DocumentQueue[T]]:
        return [document for document in self.documents.values() if document.pages]


class FairQueue(Generic[T]):
    """Items, one a page, in two-level stride order: tenants, then documents, then page numbers.

    It holds a few windows of items at most, so plain scans are the cheapest code.
    """

    def __init__(self) -> None:
        self._tenants: dict[str, _TenantQueue[T]] = {}
        self._turn = 0

    @property
    def _waiting(self) -> list[_TenantQueue[T]]:
        return [tenant for tenant in self._tenants.values() if tenant.waiting]

    def __len__(self) -> int:
        return sum(len(document.pages) for tenant in self._tenants.values() for document in tenant.waiting)

    def push(self, claim: Claim, item: T) -> None:
        """Add the item of a page. A tenant or document that is new here joins the others.

        One that was served its only waiting page is not new: it keeps its pass while its next page is drawn.
        """
        self._turn += 1
        tenant = self._tenants.get(claim.tenant)
        if tenant is None:
            tenant = _TenantQueue(TENANT_STRIDE)
            tenant.join(self._turn, self._waiting, self._tenants.values())
            self._tenants[claim.tenant] = tenant
        document = tenant.documents.get(claim.document_id)
        if document is None:
            document = _DocumentQueue(stride(claim.priority))
            document.join(self._turn, tenant.waiting, tenant.documents.values())
            tenant.documents[claim.document_id] = document
        document.pages[claim.page] = item

    def in_order(self) -> Iterator[T]:
        """Waiting items, the next to be served first. The queue must not change meanwhile."""
        for tenant in sorted(self._waiting, key=lambda tenant: tenant.rank):
            for document in sorted(tenant.waiting, key=lambda document: document.rank):
                for number in sorted(document.pages):
                    yield document.pages[number]

    def serve(self, claim: Claim) -> T:
        """Take out the item of a page that is dispatched now; KeyError when it doesn't wait here."""
        tenant = self._tenants[claim.tenant]
        document = tenant.documents[claim.document_id]
        self._turn += 1
        tenant.serve(self._turn, self._waiting)
        document.serve(self._turn, tenant.waiting)
        return document.pages.pop(claim.page)

    def discard(self, claim: Claim, item: T) -> None:
        """Take out the item of a page that needs no lane any more, if it still waits here."""
        tenant = self._tenants.get(claim.tenant)
        document = tenant.documents.get(claim.document_id) if tenant else None
        if document and document.pages.get(claim.page) is item:  # and not that of a later claim
            del document.pages[claim.page]

    def forget(self, claim: Claim) -> None:
        """Drop what is remembered of a document of which no page is worked on any more."""
        tenant = self._tenants.get(claim.tenant)
        if tenant is None:
            return
        tenant.documents.pop(claim.document_id, None)
        if not tenant.documents:
            del self._tenants[claim.tenant]
