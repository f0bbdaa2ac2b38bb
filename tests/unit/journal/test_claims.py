"""What a claim costs, and the number that fences it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from app.documents.states import OnPageError
from app.journal import Journal
from tests.journals import PROFILES, failed, new_document, read_all, settings_for, succeeded
from tests.unit.journal.plans import plan_steps


async def test_a_claim_reads_only_indexes_of_what_is_claimable(
    tmp_path: Path, statements: list[tuple[str, Any]]
) -> None:
    settings = settings_for(tmp_path)
    journal = await Journal.open(settings)
    await journal.add_document(new_document(2))
    await read_all(journal)
    for tenant in ("one", "two"):
        await journal.add_document(new_document(3, tenant=tenant))
    statements.clear()

    assert len(await journal.claim(4, PROFILES, without=["other"])) == 4

    await journal.close()
    steps = plan_steps(settings.database_path, statements)
    tables = [step for step in steps if step.startswith(("SCAN", "SEARCH"))]
    assert tables
    for step in tables:
        assert any(index in step for index in ("claimable", "documents_1 (id=?)", "tenants_1 (name=?)", "anon_")), step


async def test_a_claim_needs_as_many_statements_for_one_document_as_for_fifty(
    tmp_path: Path, statements: list[tuple[str, Any]]
) -> None:
    journal = await Journal.open(settings_for(tmp_path))
    counts = []
    for documents in (1, 50):
        for _ in range(documents):
            await journal.add_document(new_document(50 // documents))
        statements.clear()
        assert len(await journal.claim(50, PROFILES)) == 50
        counts.append(len(statements))
    await journal.close()
    assert counts[0] == counts[1]


async def test_the_fence_rises_at_each_claim_hand_back_commit_stop_retry_and_cancel(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    journal = await Journal.open(settings)
    new = new_document(2, on_page_error=OnPageError.FAIL)
    await journal.add_document(new)

    def fences() -> list[int]:
        with closing(sqlite3.connect(settings.database_path)) as connection:
            return [number for (number,) in connection.execute("SELECT claim_number FROM pages ORDER BY number")]

    seen = [fences()]
    first, _ = await journal.claim(2, PROFILES)
    seen.append(fences())
    await journal.release(first, attempts=0)
    seen.append(fences())
    (first,) = await journal.claim(1, PROFILES)
    await journal.commit(first, failed())
    seen.append(fences())
    await journal.retry(new.id)
    seen.append(fences())
    (first,) = await journal.claim(1, PROFILES)
    await journal.commit(first, succeeded())
    seen.append(fences())
    await journal.cancel(new.id)
    seen.append(fences())
    await journal.close()
    assert seen == [[0, 0], [1, 1], [2, 1], [4, 2], [5, 3], [7, 3], [7, 4]]
