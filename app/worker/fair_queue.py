"""The order in which drawn pages go to lanes: the stride scheduling of the journal, applied again in memory.

Pages are claimed a little ahead of the lanes. Were they dispatched in the order of their claims, a newcomer would wait
behind every image that is already drawn; so the same two-level order decides again at dispatch.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.documents.fairness import TENANT_STRIDE, joining_pass, stride
from app.documents.records import Claim

T = TypeVar("T")


@dataclass(slots=True)
class _Party:
    """A tenant or a document in the order.

    Among equal passes a newcomer goes first, so that it waits for one page only. Whoever was overtaken so goes before
    later newcomers, first come first served: a stream of newcomers can't starve it.
    """

    pass_: int = 0
    since: int = 0
    """Turn at which it came to its pass."""
    served: bool = False
    overtaken: bool = False

    @property
    def rank(self) -> tuple[int, bool, bool, int]:
        return self.pass_, not self.overtaken, self.served and not self.overtaken, self.since

    def serve(self, step: int, turn: int, rivals: Iterable["_Party"]) -> None:
        for rival in rivals:
            rival.overtaken |= rival is not self and rival.pass_ == self.pass_
        self._move(self.pass_ + step, turn)
        self.served = True

    def join(self, turn: int, in_use: Iterable["_Party"], known: Iterable["_Party"]) -> None:
        last = max((other.pass_ for other in known), default=0)
        self._move(joining_pass(self.pass_, (other.pass_ for other in in_use), last), turn)

    def _move(self, pass_: int, turn: int) -> None:
        self.pass_, self.since, self.overtaken = pass_, turn, False


@dataclass(slots=True)
class _DocumentQueue(_Party, Generic[T]):
    step: int = 0
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
        """Add the item of a page. A tenant or document that had none waiting joins at the smallest pass in use."""
        self._turn += 1
        tenant = self._tenants.setdefault(claim.tenant, _TenantQueue())
        if not tenant.waiting:
            tenant.join(self._turn, self._waiting, self._tenants.values())
        document = tenant.documents.setdefault(claim.document_id, _DocumentQueue(step=stride(claim.priority)))
        if not document.pages:
            document.join(self._turn, tenant.waiting, tenant.documents.values())
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
        tenant.serve(TENANT_STRIDE, self._turn, self._waiting)
        document.serve(document.step, self._turn, tenant.waiting)
        return document.pages.pop(claim.page)

    def discard(self, claim: Claim) -> None:
        """Take out a page that needs no lane any more, if it waits here."""
        tenant = self._tenants.get(claim.tenant)
        document = tenant.documents.get(claim.document_id) if tenant else None
        if document:
            document.pages.pop(claim.page, None)

    def forget(self, claim: Claim) -> None:
        """Drop what is remembered of a document of which no page is worked on any more."""
        tenant = self._tenants.get(claim.tenant)
        if tenant is None:
            return
        tenant.documents.pop(claim.document_id, None)
        if not tenant.documents:
            del self._tenants[claim.tenant]
