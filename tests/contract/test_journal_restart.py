"""Restart: what a gateway leaves behind, however it ends, and who may come next."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.documents.states import DocumentState
from app.errors import StartError, StoreUnavailable
from app.journal import Journal
from app.settings import Settings
from tests.journals import PROFILES, new_document, read_all, run_sql, settings_for, succeeded, told

_GATEWAY = """
import asyncio, pathlib, sys
from app.journal import Journal
from tests.journals import PROFILES, new_document, settings_for, succeeded

async def main():
    journal = await Journal.open(settings_for(pathlib.Path(sys.argv[1])))
    new = new_document(20)
    await journal.add_document(new)
    first, *_ = await journal.claim(6, PROFILES)
    await journal.commit(first, succeeded())
    print(new.id, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@contextmanager
def gateway(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that has written a document of 20 pages, ended its first page and holds five more."""
    process = subprocess.Popen([sys.executable, "-c", _GATEWAY, str(data_dir)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


async def test_a_restart_frees_the_claims_of_the_last_gateway(settings: Settings) -> None:
    journal = await Journal.open(settings)
    new, other = new_document(6), new_document(2, tenant="other")
    await journal.add_document(new)
    await journal.add_document(other)
    stale = await journal.claim(6, PROFILES)
    await journal.commit(stale[0], succeeded())
    await journal.close()

    journal = await Journal.open(settings)

    assert await journal.queue_depth() == 7
    counts = (await journal.document(new.id)).counts
    assert (counts.queued, counts.running, counts.succeeded) == (5, 0, 1)
    assert not await journal.commit(stale[1], succeeded())
    await read_all(journal)
    for document in (new, other):
        assert (await journal.document(document.id)).state is DocumentState.SUCCEEDED
        pages = [page for _, kind, page in told(await journal.events(document.id)) if kind == "page"]
        assert sorted(filter(None, pages)) == list(document.pages)
    await journal.close()


async def test_nothing_is_lost_or_read_twice_when_the_gateway_is_killed(tmp_path: Path) -> None:
    with gateway(tmp_path) as (process, document_id):
        process.send_signal(signal.SIGKILL)
        process.wait()

    journal = await Journal.open(settings_for(tmp_path))

    counts = (await journal.document(document_id)).counts
    assert (counts.queued, counts.running, counts.succeeded) == (19, 0, 1)
    claims = await read_all(journal)
    assert len(claims) == 19
    events = told(await journal.events(document_id))
    assert [seq for seq, _, _ in events] == list(range(1, 23))
    assert sorted(page for _, kind, page in events if kind == "page" and page) == list(range(1, 21))
    assert [kind for _, kind, _ in events].count("end") == 1
    await journal.close()


async def test_a_second_gateway_on_the_same_directory_refuses_to_start(journal: Journal, settings: Settings) -> None:
    with pytest.raises(StartError, match=f"another gateway uses the data directory {settings.data_dir}"):
        await Journal.open(settings)
    await journal.add_document(new_document(1))


async def test_the_lock_holds_between_processes(tmp_path: Path) -> None:
    with gateway(tmp_path), pytest.raises(StartError):
        await Journal.open(settings_for(tmp_path))


async def test_a_start_that_failed_leaves_the_directory_free(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    settings.database_path.write_bytes(b"this is no database" * 1000)
    with pytest.raises(StartError, match="can't be opened"):
        await Journal.open(settings)

    settings.database_path.unlink()
    await (await Journal.open(settings)).close()


async def test_a_newer_schema_is_left_alone(settings: Settings) -> None:
    await (await Journal.open(settings)).close()
    run_sql(settings, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(StartError, match="newer"):
        await Journal.open(settings)


async def test_a_closed_journal_takes_nothing_more(settings: Settings) -> None:
    journal = await Journal.open(settings)
    await journal.close()
    with pytest.raises(StoreUnavailable):
        await journal.add_document(new_document(1))
    with pytest.raises(StoreUnavailable):
        await journal.ping()


async def test_close_writes_what_was_submitted(settings: Settings) -> None:
    journal = await Journal.open(settings)
    new = new_document(30)
    await journal.add_document(new)
    commits = [asyncio.create_task(journal.commit(claim, succeeded())) for claim in await journal.claim(30, PROFILES)]
    await asyncio.sleep(0)
    await journal.close()
    assert all(await asyncio.gather(*commits))

    journal = await Journal.open(settings)
    assert (await journal.document(new.id)).state is DocumentState.SUCCEEDED
    await journal.close()
