"""What must hold when all is quiet. Every check gives its faults as sentences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from tests.crash.cluster import Cluster
from tests.crash.customers import Customer, Wish
from tests.crash.following import Follower
from tests.crash.service import Service
from tests.crash.stores import Store
from tests.system.gateway import Event
from tests.waiting import until

SWEEP_SECONDS = 60
"""Deadline for bytes that a killed gateway left: they are swept once they are old enough."""


async def document_faults(service: Service, store: Store, customers: Sequence[Customer]) -> list[str]:
    """Every document is there, once, and whole; and its follower saw all of it."""
    kept = [customer for customer in customers if not customer.deleted]
    expected = {str(customer.document_id) for customer in kept}
    listed = await _listed(service)
    faults = [
        *_unequal("documents are lost", expected - listed),
        *_unequal("documents are there that nobody was told of", listed - expected),
        *_unequal("documents are listed, but not in the database, or the reverse", listed ^ store.document_ids()),
    ]
    for customer in kept:
        if customer.document_id in listed:
            found = await _faults_of(service, customer)
            faults += [f"document {customer.document_id} ({customer.order.wish}): {fault}" for fault in found]
    return faults


async def rest_faults(cluster: Cluster, store: Store) -> list[str]:
    """Nothing is left over: no claim, no counter, no bytes, no process."""
    faults = [f"{count} {what}" for what, count in store.unrest().items()]
    try:
        await until(lambda: not store.blob_faults(), SWEEP_SECONDS)
    except TimeoutError:
        faults += _unequal("blobs without a document, or the reverse", store.blob_faults())
    faults += _unequal("files in the spool", {path.name for path in cluster.spooled()})
    orphans = {pid for program in cluster.gateways for pid in program.orphans()}
    return [*faults, *_unequal("processes of killed gateways", map(str, orphans))]


async def _listed(service: Service) -> set[str]:
    ids: set[str] = set()
    path = "/documents?limit=1000"
    while path:
        response, _ = await service.request("GET", path)
        ids |= {document["id"] for document in response.raise_for_status().json()["documents"]}
        path = response.links.get("next", {}).get("url", "")
    return ids


async def _faults_of(service: Service, customer: Customer) -> list[str]:
    assert customer.document_id is not None and customer.follower is not None
    replay = Follower(service, customer.document_id)
    await replay.to_the_end()
    path = f"/documents/{customer.document_id}/result"
    result = await service.json(path, format="json", partial="true")
    return [
        *_replay_faults(customer, replay.events),
        *_result_faults(customer, result["pages"]),
        *_follower_faults(customer, replay.events),
    ]


def _replay_faults(customer: Customer, replay: Sequence[Event]) -> Iterator[str]:
    kinds = [event.kind for event in replay]
    pages = Counter(event.page for event in replay if event.page)
    counts = replay[-1].data["document"]["pages"]
    if kinds != ["document", *["page"] * pages.total(), "end"]:
        yield f"events are {kinds}"
    if any(count > 1 for count in pages.values()):
        yield f"pages twice: {pages}"
    if pages.total() + counts["cancelled"] != customer.order.pages or counts["total"] != customer.order.pages:
        yield f"{pages.total()} page events, counts {counts}, but {customer.order.pages} pages"
    if counts["cancelled"] and customer.order.wish is not Wish.CANCEL:
        yield "pages are cancelled"
    if not customer.retried and [event.data["seq"] for event in replay] != list(range(1, len(replay) + 1)):
        yield "seq has gaps"


def _result_faults(customer: Customer, pages: Sequence[dict[str, object]]) -> Iterator[str]:
    if [page["page"] for page in pages] != list(customer.order.codes):
        yield f"the result has pages {[page['page'] for page in pages]}"
        return
    for page, code in zip(pages, customer.order.codes.values(), strict=True):
        if page["state"] == "succeeded" and page["text"] != str(code):
            yield f"page {code.page} has the text {page['text']!r}"
        if page["state"] == "failed" and not code.hard:
            yield f"page {code.page} failed: {page['error']}"


def _follower_faults(customer: Customer, replay: Sequence[Event]) -> Iterator[str]:
    """Each event of the replay came once; any other was taken back by a retry."""
    assert customer.follower is not None
    seen = customer.follower.events
    ids = [int(event.id) for event in seen]
    if any(later <= earlier for earlier, later in pairwise(ids)):
        yield f"its follower was sent events out of order or twice: {ids}"
    if missed := {event.id for event in replay} - {event.id for event in seen}:
        yield f"its follower missed events {sorted(missed, key=int)}"
    last = {event.id: event for event in replay}
    others = [event for event in seen if event.id not in last]
    if any(not (event.kind == "end" or event.data["page"]["state"] == "failed") for event in others) or (
        others and not customer.retried
    ):
        yield f"its follower was sent events that are not there: {others}"
    if any(event.data["page"] != last[event.id].data["page"] for event in seen if event.page and event.id in last):
        yield "its follower was sent other pages than are there"


def _unequal(what: str, items: Iterable[str]) -> list[str]:
    found = sorted(items)
    return [f"{len(found)} {what}: {', '.join(found[:10])}"] if found else []
