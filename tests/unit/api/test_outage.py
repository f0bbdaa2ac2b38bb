"""What clients see while the store is away: streams and waits outlast it, all else is told to come back."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import Executable, Row

from app.api import Context, event_stream, preferences
from app.api.cursors import Order
from app.api.event_stream import event_order, follow
from app.api.preferences import wait_for_end
from app.documents.records import Document
from app.errors import StoreUnavailable
from app.intake import Intake, Receipt, Upload
from app.journal import Journal
from app.main import Gateway
from app.settings import Settings
from tests.journals import new_document, read_all, succeeded
from tests.unit.api.conftest import NOBODY
from tests.waiting import until


class Store:
    """The journal's reads, which fail while the store is `away`, and now and then while it is `shaky`."""

    def __init__(self, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
        self.away = False
        self.shaky = False
        self.refused = 0
        self._chance = random.Random(7)
        self._read = journal._database.read
        monkeypatch.setattr(journal._database, "read", self.read)

    async def read(self, statement: Executable) -> Sequence[Row[Any]]:
        if self.away or (self.shaky and self._chance.random() < 0.4):
            self.refused += 1
            raise StoreUnavailable("the database can't be reached")
        return await self._read(statement)


@pytest.fixture
def store(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> Store:
    for module in (event_stream, preferences):
        monkeypatch.setattr(module, "STORE_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(event_stream, "BATCH", 2)
    return Store(journal, monkeypatch)


async def follow_into(told: list[str | int], journal: Journal, document: Document, order: Order) -> None:
    async for event in follow(journal, document.id, event_order(order, journal, document, None, "")):
        told.append(event.data["page"]["page"] if "page" in event.data else event.kind.value)


@pytest.mark.parametrize("order", list(Order))
async def test_a_stream_goes_on_where_it_was_once_the_store_is_back(
    journal: Journal, store: Store, order: Order
) -> None:
    document = await journal.add_document(new_document(3))
    told: list[str | int] = []
    following = asyncio.create_task(follow_into(told, journal, document, order))
    await until(lambda: told == ["document"])
    store.away = True
    await read_all(journal)
    await until(lambda: store.refused > 3)
    assert told == ["document"]
    store.away = False
    await asyncio.wait_for(following, 10)
    assert told == ["document", 1, 2, 3, "end"]


@pytest.mark.parametrize("order", list(Order))
async def test_a_stream_over_a_shaky_store_tells_everything_once(journal: Journal, store: Store, order: Order) -> None:
    document = await journal.add_document(new_document(7))
    await read_all(journal)
    store.shaky = True
    told: list[str | int] = []
    await asyncio.wait_for(follow_into(told, journal, document, order), 10)
    assert told == ["document", *range(1, 8), "end"]
    assert store.refused > 3


async def test_a_wait_for_the_end_outlasts_an_outage(context: Context, journal: Journal, store: Store) -> None:
    document = await journal.add_document(new_document())
    store.away = True
    waiting = asyncio.create_task(wait_for_end(context, document, 60))
    await until(lambda: store.refused > 3)
    await read_all(journal)
    store.away = False
    assert (await asyncio.wait_for(waiting, 10)).state.ended


async def test_a_wait_that_ends_in_an_outage_says_so(context: Context, journal: Journal, store: Store) -> None:
    document = await journal.add_document(new_document())
    store.away = True
    started = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await wait_for_end(context, document, 0.1)
    assert time.monotonic() - started >= 0.1


async def test_a_gateway_that_closes_answers_whoever_waits_with_what_there_is(tmp_path: Path) -> None:
    """A 503 would make the client send the file again."""
    gateway = Gateway(Settings(data_dir=tmp_path, endpoints=(NOBODY,)))
    context = await gateway.start()
    document = await context.journal.add_document(new_document())
    waiting = [asyncio.create_task(wait_for_end(context, document, 60)) for _ in range(3)]
    await asyncio.sleep(0.05)
    await gateway.drain()
    assert [found.state for found in await asyncio.wait_for(asyncio.gather(*waiting), 10)] == ["queued"] * 3
    assert (await asyncio.wait_for(wait_for_end(context, document, 60), 10)).id == document.id
    await gateway.stop()


@pytest.mark.parametrize(
    "path", ["", "/{id}", "/{id}/events", "/{id}/result", "/{id}/pages", "/{id}/pages/1", "/{id}/source"]
)
async def test_whoever_does_not_wait_is_told_to_come_back(
    client: httpx.AsyncClient, journal: Journal, store: Store, path: str
) -> None:
    document = await journal.add_document(new_document())
    store.away = True
    response = await client.get("/documents" + path.format(id=document.id))
    assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
    assert response.json()["retryable"] is True
    assert int(response.headers["retry-after"]) >= 1


async def test_what_was_accepted_is_told_though_its_end_can_not_be_waited_for(
    application: FastAPI, client: httpx.AsyncClient, journal: Journal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 503 would make the client send the file again."""
    document = await journal.add_document(new_document())

    async def receive(self: Intake, upload: Upload, tenant: str, *, single: bool) -> Receipt:
        store.away = True
        return Receipt([document], replayed=True)

    monkeypatch.setattr(Intake, "receive", receive)
    response = await client.post("/documents", content=b"%PDF", headers={"Prefer": "wait=0.1", "Idempotency-Key": "1"})
    assert (response.status_code, response.json()["id"]) == (202, document.id)
    assert response.headers["location"] == f"/documents/{document.id}"
    assert response.headers["idempotent-replayed"] == "true"


async def test_the_answer_to_an_upload_streams_through_an_outage(
    client: httpx.AsyncClient, journal: Journal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await journal.add_document(new_document())

    async def receive(self: Intake, upload: Upload, tenant: str, *, single: bool) -> Receipt:
        store.away = True
        return Receipt([document])

    async def come_back() -> None:
        await until(lambda: store.refused > 3)
        for claim in await journal.claim(100, ("cpu",)):
            await journal.commit(claim, succeeded())
        store.away = False

    monkeypatch.setattr(Intake, "receive", receive)
    coming = asyncio.create_task(come_back())
    response = await client.post("/documents", content=b"%PDF", headers={"Accept": "application/x-ndjson"})
    await coming
    assert [json.loads(line)["event"] for line in response.text.splitlines()] == ["document", "page", "end"]
