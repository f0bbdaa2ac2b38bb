"""What can be done with a document: list, pages, image, source, wait, partial results, retry, keep time."""

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from PIL import Image

from tests.pdfs import numbered_pdf, text_pdf
from tests.standins import Reply, StandIn
from tests.system.gateway import Gateway, running_gateway
from tests.waiting import until


@pytest.fixture(scope="module")
async def replica() -> AsyncIterator[StandIn]:
    async with StandIn(slots=2, text=lambda _: "read") as replica:
        yield replica


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory, replica: StandIn) -> AsyncIterator[Gateway]:
    environment = {"PAGEFLEET_SWEEP_INTERVAL_SECONDS": "0.1"}
    async with running_gateway(tmp_path_factory.mktemp("data"), [replica.url], environment) as gateway:
        await gateway.lanes_up(1)
        yield gateway


@pytest.fixture(autouse=True)
def good_answers(replica: StandIn) -> None:
    replica.always(None)


async def failed_document(gateway: Gateway, replica: StandIn, count: int, **options: str) -> str:
    """Id of a document none of whose pages could be read."""
    replica.always(Reply(status=400))
    document = await gateway.post(numbered_pdf(count), **options)
    await gateway.ended(document["id"])
    replica.always(None)
    return str(document["id"])


async def test_the_list_is_newest_first_and_leads_on(gateway: Gateway) -> None:
    posted = [(await gateway.post(numbered_pdf(1)))["id"] for _ in range(5)]
    found: list[str] = []
    path: str | None = "/documents?limit=2"
    while path:
        response = await gateway.client.get(path)
        found += [document["id"] for document in response.json()["documents"]]
        path = response.links["next"]["url"] if "next" in response.links else None
    assert found[:5] == posted[::-1]
    assert len(found) == len(set(found))
    await gateway.ended(posted[-1])
    succeeded = (await gateway.client.get("/documents?state=succeeded")).json()["documents"]
    assert {document["state"] for document in succeeded} == {"succeeded"}
    assert (await gateway.client.get("/documents?state=happy")).json()["code"] == "option_invalid"
    assert (await gateway.client.get("/documents?cursor=nonsense")).json()["code"] == "cursor_invalid"


async def test_pages_have_facts_and_text(gateway: Gateway) -> None:
    document = await gateway.post(numbered_pdf(5))
    await gateway.ended(document["id"])
    first = await gateway.client.get(document["links"]["pages"], params={"limit": "3"})
    rest = await gateway.client.get(first.links["next"]["url"])
    assert [page["page"] for page in first.json()["pages"] + rest.json()["pages"]] == [1, 2, 3, 4, 5]
    assert "next" not in rest.links
    page = (await gateway.client.get(f"{document['links']['pages']}/2")).json()
    assert page == first.json()["pages"][1]
    assert (page["state"], page["source"], page["text"], page["attempts"]) == ("succeeded", "model", "read", 1)
    assert page["size"] == [240, 120]
    assert page.keys() == {
        *("page", "state", "source", "text", "profile", "model", "lane", "attempts", "seconds", "size", "tokens"),
        *("confidence", "warnings", "error"),
    }
    missing = await gateway.client.get(f"{document['links']['pages']}/6")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


async def test_a_page_is_drawn_on_demand(gateway: Gateway) -> None:
    document = await gateway.post(numbered_pdf(2))
    path = f"{document['links']['pages']}/2/image"
    jpeg = await gateway.client.get(path)
    png = await gateway.client.get(path, params={"longest_side": "480"}, headers={"Accept": "image/png"})
    assert jpeg.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(jpeg.content)).format == "JPEG"
    drawn = Image.open(io.BytesIO(png.content))
    assert (drawn.format, drawn.size) == ("PNG", (480, 240))
    assert (await gateway.client.get(f"{document['links']['pages']}/9/image")).status_code == 404


async def test_the_source_comes_back_byte_for_byte(gateway: Gateway) -> None:
    pdf = numbered_pdf(2)
    document = await gateway.post(pdf)
    path = document["links"]["self"] + "/source"
    whole = await gateway.client.get(path)
    part = await gateway.client.get(path, headers={"Range": "bytes=5-14"})
    assert whole.content == pdf
    assert whole.headers["content-type"] == "application/pdf"
    assert "test.pdf" in whole.headers["content-disposition"]
    assert (part.status_code, part.content) == (206, pdf[5:15])


async def test_prefer_wait_holds_until_the_end(gateway: Gateway, replica: StandIn) -> None:
    prefer = {"Prefer": "wait=30"}
    ended = await gateway.client.post("/documents", content=numbered_pdf(2), headers=prefer)
    assert (ended.status_code, ended.json()["state"]) == (200, "succeeded")
    assert ended.headers["preference-applied"] == "wait=30"

    replica.plan(Reply(seconds=1))
    document = await gateway.post(numbered_pdf(1))
    result = await gateway.client.get(document["links"]["result"], headers=prefer)
    assert (result.status_code, result.text) == (200, "<!-- page 1 -->\n\nread\n\n")


async def test_prefer_wait_gives_up_in_time(gateway: Gateway, replica: StandIn) -> None:
    replica.plan(Reply(seconds=10))
    accepted = await gateway.client.post("/documents", content=numbered_pdf(1), headers={"Prefer": "wait=1"})
    assert (accepted.status_code, accepted.json()["state"]) == (202, "running")
    shown = await gateway.client.get(accepted.json()["links"]["self"], headers={"Prefer": "wait=0"})
    assert shown.json()["state"] == "running"
    result = await gateway.client.get(accepted.json()["links"]["result"])
    assert (result.status_code, result.json()["code"]) == (409, "not_ended")
    partial = await gateway.client.get(accepted.json()["links"]["result"], params={"partial": "true"})
    assert (partial.status_code, partial.text) == (200, "")
    await gateway.client.post(accepted.json()["links"]["cancel"])


async def test_results_come_in_four_formats(gateway: Gateway) -> None:
    document = await gateway.post(numbered_pdf(2))
    await gateway.ended(document["id"])
    formats = {}
    for name in ("md", "txt", "json", "ndjson"):
        formats[name] = (await gateway.client.get(document["links"]["result"], params={"format": name})).text
    assert formats["md"] == "<!-- page 1 -->\n\nread\n\n<!-- page 2 -->\n\nread\n\n"
    assert formats["txt"] == "read\n\fread\n\f"
    assert [page["page"] for page in json.loads(formats["json"])["pages"]] == [1, 2]
    assert [json.loads(line)["page"] for line in formats["ndjson"].splitlines()] == [1, 2]


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
async def test_a_post_can_be_answered_by_the_stream(gateway: Gateway, accept: str) -> None:
    response = await gateway.client.post("/documents", content=numbered_pdf(2), headers={"Accept": accept})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(accept)
    assert response.headers["location"].startswith("/documents/")
    assert [response.text.count(f'"event":"{kind}"') for kind in ("document", "page", "end")] == [1, 2, 1]


async def test_a_stream_is_for_one_file_and_its_document_lives_on_without_the_client(
    gateway: Gateway, replica: StandIn
) -> None:
    accept = {"Accept": "text/event-stream"}
    files = [("file", ("a.pdf", numbered_pdf(1))), ("file", ("b.pdf", numbered_pdf(1)))]
    several = await gateway.client.post("/documents", files=files, headers=accept)
    assert (several.status_code, several.json()["code"]) == (422, "option_invalid")

    replica.plan(Reply(seconds=0.5))
    async with gateway.client.stream("POST", "/documents", content=numbered_pdf(2), headers=accept) as response:
        location = response.headers["location"]
    assert (await gateway.ended(location.rsplit("/", 1)[-1]))["state"] == "succeeded"


async def test_retry_reads_only_what_failed(gateway: Gateway, replica: StandIn) -> None:
    replica.plan(*(Reply(status=400) if number == 2 else Reply() for number in range(4)))
    document = await gateway.post(numbered_pdf(4))
    first = [event async for event in gateway.follow(document["id"])]
    assert first[-1].data["document"]["state"] == "partial"
    calls = len(replica.calls)

    retried = await gateway.client.post(document["links"]["self"] + "/retry")
    rest = [event async for event in gateway.follow(document["id"], first[-1].id)]
    whole = [event async for event in gateway.follow(document["id"])]
    assert (retried.status_code, retried.json()["state"]) == (202, "queued")
    assert len(replica.calls) == calls + 1
    assert [event.kind for event in rest] == ["page", "end"]
    assert sorted(event.page for event in whole if event.page) == [1, 2, 3, 4]
    assert [event.kind for event in whole].count("end") == 1
    assert whole[-1].data["document"]["state"] == "succeeded"

    again = await gateway.client.post(document["links"]["self"] + "/retry")
    assert (again.status_code, again.json()["code"]) == (409, "not_retryable")


async def test_a_page_order_cursor_from_before_a_retry_replays(gateway: Gateway, replica: StandIn) -> None:
    document_id = await failed_document(gateway, replica, 2)
    before = [event async for event in gateway.follow(document_id, order="page")]
    await gateway.client.post(f"/documents/{document_id}/retry")
    after = [event async for event in gateway.follow(document_id, before[-1].id, order="page")]
    assert [event.page for event in after if event.page] == [1, 2]
    assert [event.id for event in after if event.page] == ["1.1", "1.2"]
    assert after[-1].data["document"]["state"] == "succeeded"


async def test_on_page_error_fail_stops_the_document(gateway: Gateway, replica: StandIn) -> None:
    replica.always(Reply(seconds=0.05, status=400))
    document = await gateway.post(numbered_pdf(30), on_page_error="fail")
    end = await gateway.ended(document["id"])
    assert (end["state"], end["error"]["code"]) == ("failed", "document_failed")
    assert end["pages"]["cancelled"] > 20
    replica.always(None)
    await gateway.client.post(document["links"]["self"] + "/retry")
    assert (await gateway.ended(document["id"]))["pages"]["succeeded"] == 30


async def test_on_page_error_text_layer_lets_the_pages_own_text_stand_in(gateway: Gateway, replica: StandIn) -> None:
    replica.always(Reply(status=400))
    document = await gateway.post(text_pdf(["The text layer itself."]), on_page_error="text_layer")
    end = await gateway.ended(document["id"])
    page = (await gateway.client.get(f"{document['links']['pages']}/1")).json()
    assert end["state"] == "succeeded"
    assert (page["state"], page["source"], page["text"].strip()) == (
        "succeeded",
        "text_layer",
        "The text layer itself.",
    )
    assert [warning["code"] for warning in page["warnings"]] == ["replica_error"]


async def test_a_blank_page_is_not_sent(gateway: Gateway, replica: StandIn) -> None:
    calls = len(replica.calls)
    document = await gateway.post(text_pdf(["", "Some text."]))
    await gateway.ended(document["id"])
    pages = (await gateway.client.get(document["links"]["pages"])).json()["pages"]
    assert [(page["source"], page["text"]) for page in pages] == [("blank", ""), ("model", "read")]
    assert len(replica.calls) == calls + 1


@pytest.mark.parametrize("options", [{"on_page_error": "explode"}, {"ttl": "0"}, {"ttl": "tomorrow"}])
async def test_options_are_checked(gateway: Gateway, options: dict[str, str]) -> None:
    response = await gateway.client.post("/documents", params=options, content=numbered_pdf(1))
    assert (response.status_code, response.json()["code"]) == (422, "option_invalid")


async def test_after_its_keep_time_a_document_is_gone(gateway: Gateway) -> None:
    before = time.time()
    document = await gateway.post(numbered_pdf(1), ttl="2")
    kept = await gateway.post(numbered_pdf(1))
    await gateway.ended(document["id"])
    shown = await gateway.client.get(document["links"]["self"])
    assert shown.json()["expires_at"] is not None
    assert 1 <= parsedate_to_datetime(shown.headers["sunset"]).timestamp() - before <= 60

    async def gone() -> bool:
        return (await gateway.client.get(document["links"]["self"])).status_code == 410

    await until(gone)
    for path in ("", "/result", "/events", "/pages", "/source"):
        response = await gateway.client.get(document["links"]["self"] + path)
        assert (response.status_code, response.json()["code"]) == (410, "gone")
    blobs = gateway.data_dir / "blobs" / "v1" / "default"
    await until(lambda: not (blobs / document["id"]).exists())
    assert (blobs / kept["id"]).exists()


async def test_priority_goes_first(tmp_path: Path) -> None:
    async with StandIn(slots=1, seconds=0.1) as replica, running_gateway(tmp_path, [replica.url]) as gateway:
        await gateway.lanes_up(1)
        slow = await gateway.post(numbered_pdf(30), priority="7")
        urgent = await gateway.post(numbered_pdf(15), priority="0")
        await gateway.ended(urgent["id"])
        counts = (await gateway.client.get(slow["links"]["self"])).json()["pages"]
    assert counts["succeeded"] <= 8  # at equal weights it would be about 15


async def test_eight_clients_at_once_get_what_each_gets_alone(gateway: Gateway, replica: StandIn) -> None:
    """Texts of different documents are never mixed up: the stand-in answers with the image's hash."""
    letters = [numbered_pdf(3, word) for word in ("ANCHOR", "BRIDGE", "CANDLE")]
    replica.text = lambda call: call.image_sha256
    try:
        alone = [await read(gateway, letter) for letter in letters]
        together = await asyncio.gather(*(read(gateway, letters[client % 3]) for client in range(24)))
    finally:
        replica.text = lambda _: "read"
    assert all(texts == alone[client % 3] for client, texts in enumerate(together))


async def read(gateway: Gateway, pdf: bytes) -> dict[int, str]:
    document = await gateway.post(pdf)
    await gateway.ended(document["id"])
    return await gateway.texts(document["id"])
