import json
from collections.abc import Mapping

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Message

from app.api import results
from app.documents.records import PageOutcome
from app.journal import Journal
from tests.journals import PROFILES, failed, new_document, succeeded
from tests.unit.api.asgi import Exchange, scope_of


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "BATCH", 2)


async def read(journal: Journal, pages: int, outcomes: Mapping[int, PageOutcome] | None = None) -> str:
    """Id of a new document whose pages have ended, as `outcomes` says or else well."""
    document = await journal.add_document(new_document(pages))
    for claim in await journal.claim(pages, PROFILES):
        outcome = (outcomes or {}).get(claim.page) or succeeded(f"text {claim.page}")
        assert await journal.commit(claim, outcome)
    return document.id


async def test_markdown_has_every_page_in_order(client: httpx.AsyncClient, journal: Journal) -> None:
    document = await read(journal, 5, {3: failed()})
    response = await client.get(f"/documents/{document}/result")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.text.split("\n\n") == [
        *("<!-- page 1 -->", "text 1", "<!-- page 2 -->", "text 2"),
        "<!-- page 3 failed: replica_error -->",
        *("<!-- page 4 -->", "text 4", "<!-- page 5 -->", "text 5", ""),
    ]


async def test_json_has_every_page_in_order_failed_ones_too(client: httpx.AsyncClient, journal: Journal) -> None:
    document = await read(journal, 5, {3: failed()})
    response = await client.get(f"/documents/{document}/result?format=json")
    result = response.json()
    assert response.headers["content-type"] == "application/json"
    assert result["schema"] == "pagefleet.result/1"
    assert (result["document"]["id"], result["document"]["state"]) == (document, "partial")
    assert [page["page"] for page in result["pages"]] == [1, 2, 3, 4, 5]
    assert [page["state"] == "failed" for page in result["pages"]] == [False, False, True, False, False]
    assert result["pages"][2]["error"]["code"] == "replica_error"


async def test_text_is_utf_8_and_stands_in_json_as_it_is(client: httpx.AsyncClient, journal: Journal) -> None:
    text = 'Prüfung "12"\n\\alpha 漢字'
    document = await read(journal, 1, {1: succeeded(text)})
    markdown = await client.get(f"/documents/{document}/result")
    as_json = await client.get(f"/documents/{document}/result?format=json")
    assert text in markdown.content.decode()
    assert json.loads(as_json.content)["pages"][0]["text"] == text
    assert "漢字".encode() in as_json.content


async def test_what_has_not_ended_is_told_with_the_time_to_wait(client: httpx.AsyncClient, journal: Journal) -> None:
    document = await journal.add_document(new_document(3))
    (claim, *_) = await journal.claim(3, PROFILES)
    await journal.commit(claim, succeeded())
    response = await client.get(f"/documents/{document.id}/result")
    assert (response.status_code, response.json()["code"]) == (409, "not_ended")
    assert "1 of 3 pages" in response.json()["detail"]
    assert response.json()["retryable"]
    assert int(response.headers["retry-after"]) == response.json()["retry_after"]


async def test_a_document_of_which_nothing_was_read_says_why(client: httpx.AsyncClient, journal: Journal) -> None:
    document = await read(journal, 2, {1: failed("the lane is on fire"), 2: failed()})
    response = await client.get(f"/documents/{document}/result")
    assert (response.status_code, response.json()["code"]) == (422, "document_failed")
    assert "replica_error: the lane is on fire" in response.json()["detail"]


async def test_a_cancelled_document_has_no_result(client: httpx.AsyncClient, journal: Journal) -> None:
    document = await journal.add_document(new_document(1))
    await journal.cancel(document.id)
    response = await client.get(f"/documents/{document.id}/result")
    assert (response.status_code, response.json()["code"]) == (409, "document_cancelled")


@pytest.mark.parametrize("format", ["md", "json"])
async def test_a_result_whose_document_is_deleted_meanwhile_does_not_look_complete(
    application: FastAPI, journal: Journal, format: str
) -> None:
    document = await read(journal, 6)

    class Deleting(Exchange):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if b"text 1" in message.get("body", b""):
                await journal.delete(document)

    exchange = Deleting()
    scope = scope_of(path=f"/documents/{document}/result", headers={"Host": "localhost"})
    with pytest.raises(RuntimeError, match="response already started"):
        await exchange.run(application, {**scope, "query_string": f"format={format}".encode()})
    assert b"text 6" not in exchange.body
    assert not exchange.complete
