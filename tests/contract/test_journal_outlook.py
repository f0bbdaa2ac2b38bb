"""What the journal says of the time to come."""

import random

import pytest

from app.documents.records import Claim, Document, Outlook
from app.errors import QueueFull
from app.journal import Journal
from app.journal import outlook as outlook_module
from tests.journals import PROFILES, new_document, succeeded


async def look(journal: Journal, document_id: str) -> Outlook:
    outlook = await journal.outlook(await journal.document(document_id))
    assert outlook is not None
    return outlook


async def claim_one(journal: Journal) -> Claim:
    (claim,) = await journal.claim(1, PROFILES)
    return claim


async def mixed_queue(journal: Journal, dice: random.Random, tenants: str) -> list[Document]:
    """Documents of several tenants, sizes and priorities, some of which have been read in part."""
    documents: list[Document] = []
    for _ in range(20):
        new = new_document(dice.choice([1, 2, 5, 20]), tenant=dice.choice(tenants), priority=dice.randrange(8))
        documents.append(await journal.add_document(new))
        for claim in await journal.claim(dice.randrange(3), PROFILES):
            await journal.commit(claim, succeeded())
    return documents


@pytest.mark.parametrize("tenants", ["a", "abc"])
@pytest.mark.parametrize("seed", range(3))
async def test_pages_ahead_are_those_that_are_claimed_until_the_documents_last(
    journal: Journal, tenants: str, seed: int
) -> None:
    dice = random.Random(seed)
    queue = await mixed_queue(journal, dice, tenants)
    waiting = [document for document in queue if not (await journal.document(document.id)).counts.ended]
    document = dice.choice(waiting)
    ahead = (await look(journal, document.id)).pages_ahead
    in_order = [claim.document_id for claim in await journal.claim(1000, PROFILES)]
    assert ahead == len(in_order) - in_order[::-1].index(document.id)


async def test_the_position_of_a_document_falls_as_others_of_its_tenant_begin(journal: Journal) -> None:
    await journal.add_document(new_document(50, tenant="another"))
    ids = [(await journal.add_document(new_document(1))).id for _ in range(4)]
    assert [(await look(journal, id_)).position for id_ in ids] == [1, 2, 3, 4]
    while (await claim_one(journal)).document_id != ids[0]:
        pass
    assert [(await look(journal, id_)).position for id_ in ids] == [0, 1, 2, 3]


async def test_pages_that_are_being_read_lie_ahead_too(journal: Journal) -> None:
    first, second = [(await journal.add_document(new_document(3))).id for _ in range(2)]
    assert [claim.document_id for claim in await journal.claim(4, PROFILES)] == [first, first, second, first]
    assert (await look(journal, first)).pages_ahead == 4
    assert (await look(journal, second)).pages_ahead == 6


async def test_there_is_no_outlook_once_a_page_has_ended(journal: Journal) -> None:
    document = await journal.add_document(new_document(3))
    await journal.commit(await claim_one(journal), succeeded())
    assert await journal.outlook(await journal.document(document.id)) is None


async def test_of_many_documents_only_the_first_are_looked_at(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlook_module, "MAX_ENTRIES", 3)
    monkeypatch.setattr(outlook_module, "MAX_POSITION", 5)
    monkeypatch.setattr(outlook_module, "_BEFORE_DOCUMENT", outlook_module._before_document())
    ids = [(await journal.add_document(new_document(4))).id for _ in range(9)]
    outlook = await look(journal, ids[-1])
    assert outlook.position == 5
    assert outlook.pages_ahead == 36


async def test_the_rate_is_that_of_all_gateways(journal: Journal) -> None:
    document = await journal.add_document(new_document(3))
    journal.peers.note_rate(2.5)
    assert (await look(journal, document.id)).pages_per_second == 2.5


async def test_capacity_counts_all_pages(journal: Journal) -> None:
    await journal.add_document(new_document(3))
    await journal.add_document(new_document(4, tenant="another"))
    await journal.claim(2, PROFILES)
    capacity = await journal.capacity()
    assert (capacity.queued, capacity.running, capacity.gateways) == (5, 2, 1)


@pytest.mark.parametrize(("pages_per_second", "seconds"), [(0.0, 5), (0.5, 20)])
async def test_a_full_queue_tells_when_the_pages_will_fit(
    journal: Journal, pages_per_second: float, seconds: int
) -> None:
    await journal.add_document(new_document(9_999))
    journal.peers.note_rate(pages_per_second)
    with pytest.raises(QueueFull) as caught:
        await journal.add_document(new_document(11))
    assert caught.value.problem()["retry_after"] == seconds
