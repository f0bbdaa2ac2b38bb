"""Lists of documents: newest first, a page of the list at a time."""

import pytest

from app.documents.states import DocumentState
from app.errors import CursorInvalid
from app.journal import Journal
from tests.journals import PROFILES, new_document, read_all


async def add_documents(journal: Journal, count: int, tenant: str = "default") -> list[str]:
    """Their ids, newest first."""
    documents = [new_document(1, tenant=tenant) for _ in range(count)]
    for new in documents:
        await journal.add_document(new)
    return [new.id for new in reversed(documents)]


async def listed(journal: Journal, limit: int, state: DocumentState | None = None) -> list[list[str]]:
    """Ids of the default tenant's documents, as the whole list gives them page by page."""
    batches: list[list[str]] = []
    cursor: str | None = None
    while cursor is not None or not batches:
        documents, cursor = await journal.list_documents("default", state=state, limit=limit, cursor=cursor)
        batches.append([document.id for document in documents])
    return batches


async def test_a_list_starts_with_the_newest_and_is_read_to_its_end(journal: Journal) -> None:
    assert await listed(journal, 3) == [[]]
    ids = await add_documents(journal, 6)
    await add_documents(journal, 2, tenant="other")

    assert await listed(journal, 4) == [ids[:4], ids[4:]]
    assert await listed(journal, 3) == [ids[:3], ids[3:]]
    assert await listed(journal, 6) == [ids]
    documents, _ = await journal.list_documents("default", limit=1)
    assert documents == [await journal.document(ids[0])]


async def test_a_list_of_one_state(journal: Journal) -> None:
    read = await add_documents(journal, 3)
    await read_all(journal)
    queued = await add_documents(journal, 2)
    (claim,) = await journal.claim(1, PROFILES)

    assert await listed(journal, 2, DocumentState.SUCCEEDED) == [read[:2], read[2:]]
    assert await listed(journal, 2, DocumentState.RUNNING) == [[claim.document_id]]
    assert await listed(journal, 2, DocumentState.QUEUED) == [[queued[0]]]
    assert await listed(journal, 2, DocumentState.FAILED) == [[]]


async def test_a_cursor_keeps_its_place_whatever_comes_and_goes(journal: Journal) -> None:
    ids = await add_documents(journal, 5)
    _, cursor = await journal.list_documents("default", limit=2)
    await add_documents(journal, 2)
    await journal.delete(ids[1])

    documents, _ = await journal.list_documents("default", cursor=cursor)

    assert [document.id for document in documents] == ids[2:]


@pytest.mark.parametrize("cursor", ["", "12", "0.3", "{%s}", "%s ", "é"])
async def test_what_is_no_cursor_of_a_list_is_refused(journal: Journal, cursor: str) -> None:
    (document_id,) = await add_documents(journal, 1)
    with pytest.raises(CursorInvalid):
        await journal.list_documents("default", cursor=cursor.replace("%s", document_id))
