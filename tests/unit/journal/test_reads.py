"""What a list costs."""

from pathlib import Path
from typing import Any

from app.documents.states import DocumentState
from app.journal import Journal
from tests.journals import new_document, settings_for
from tests.unit.journal.plans import plan_steps


async def test_a_list_is_read_in_order_from_an_index(tmp_path: Path, statements: list[tuple[str, Any]]) -> None:
    settings = settings_for(tmp_path)
    journal = await Journal.open(settings)
    for _ in range(3):
        await journal.add_document(new_document())
    statements.clear()

    _, cursor = await journal.list_documents("default", limit=1)
    await journal.list_documents("default", state=DocumentState.FAILED, cursor=cursor)

    await journal.close()
    assert plan_steps(settings.database_path, statements) == [
        "SEARCH documents USING INDEX ix_documents_listed (tenant=?)",
        "SEARCH documents USING INDEX ix_documents_listed_by_state (tenant=? AND state=? AND id<?)",
    ]
