"""The client at a real socket, behind which every connection is answered by a script."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.errors import StartError
from app.ocr import patience
from app.ocr.client import Client, connect
from app.ocr.errors import KeyRefused, Refused
from app.ocr.patience import Contact

DOCUMENT = {"links": {"events": "/d/events", "result": "/d/result", "self": "/d"}}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_SECONDS", 0.01)


def response(status: int, body: str, *headers: str, cut: bool = False) -> bytes:
    """A response that promises more bytes than come if it is `cut`."""
    length = f"Content-Length: {len(body) + 100 * cut}"
    return "\r\n".join([f"HTTP/1.1 {status} X", "Connection: close", length, *headers, "", body]).encode()


def stream(*events: tuple[str, str], cut: bool = False) -> bytes:
    body = "".join(f'id: {id}\nevent: {kind}\ndata: {{"event": "{kind}", "id": "{id}"}}\n\n' for id, kind in events)
    return response(200, body, "Content-Type: text/event-stream", cut=cut)


class Script:
    """A server that gives one answer a connection, the last one again and again; None: the connection is reset."""

    def __init__(self, answers: Sequence[bytes | None]) -> None:
        self.url = ""
        self.requests: list[str] = []
        self._answers = list(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((line.split()[1] for line in head.lower().splitlines() if line.startswith("content-length")), "0")
        await reader.readexactly(int(length))
        self.requests.append(head)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            writer.transport.abort()
            return
        writer.write(answer)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def scripted(*answers: bytes | None) -> AsyncIterator[tuple[Client, Script]]:
    script = Script(answers)
    async with await asyncio.start_server(script.serve, "127.0.0.1", 0) as server:
        script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with connect(script.url, own=True) as http:
            yield client_of(http), script


def client_of(http: httpx.AsyncClient) -> Client:
    return Client(http, Contact(lambda _: None, lambda: False))


def header_of(request: str, name: str) -> str | None:
    lines = (line.partition(": ") for line in request.splitlines())
    return next((value for header, _, value in lines if header.lower() == name), None)


async def ids(client: Client) -> list[str]:
    document: dict[str, Any] = DOCUMENT
    return [event["id"] async for event in client.events(document, "page")]


async def test_a_cut_stream_goes_on_after_the_last_event_seen() -> None:
    first, second = (("0.0", "document"), ("0.1", "page")), (("0.2", "page"), ("0.3", "end"))
    async with scripted(stream(*first, cut=True), None, stream(*second)) as (client, script):
        assert await ids(client) == ["0.0", "0.1", "0.2", "0.3"]
    assert "last-event-id" not in script.requests[0].lower()
    assert all("last-event-id: 0.1\r\n" in request.lower() for request in script.requests[1:])


async def test_a_stream_that_stops_without_an_end_is_taken_up_too() -> None:
    async with scripted(stream(("1", "page")), stream(("2", "end"))) as (client, _):
        assert await ids(client) == ["1", "2"]


async def test_the_stream_of_a_document_that_was_deleted_is_refused() -> None:
    gone = response(404, '{"code": "not_found", "detail": "no such document"}')
    async with scripted(stream(("1", "page")), gone) as (client, _):
        with pytest.raises(Refused, match="no such document"):
            await ids(client)


async def test_an_upload_is_sent_again_whole_after_a_cut_and_after_a_503(tmp_path: Path) -> None:
    file = tmp_path / "näme \udcff.pdf"  # a name that is not UTF-8, as old archives hold them
    file.write_bytes(b"%PDF-" + bytes(200_000))
    busy = response(503, '{"code": "busy", "detail": "later"}', "Retry-After: 0")
    async with scripted(None, busy, response(202, '{"id": "1"}')) as (client, script):
        assert await client.post(file, {"pages": "1"}) == {"id": "1"}
    lengths = [line for request in script.requests for line in request.splitlines() if "content-length" in line.lower()]
    assert len(lengths) == 3
    assert len(set(lengths)) == 1


async def test_a_result_that_breaks_off_is_fetched_again_from_its_start(tmp_path: Path) -> None:
    target = tmp_path / "result"
    async with scripted(response(200, "half", cut=True), response(200, "the whole text")) as (client, _):
        await client.save(DOCUMENT, "md", target)
    assert target.read_text() == "the whole text"


async def test_no_gateway_is_told_at_once() -> None:
    for answer in (None, response(404, "")):
        async with scripted(answer) as (client, _):
            with pytest.raises(StartError, match="there is no gateway at"):
                await client.check()
    with pytest.raises(StartError, match="no URL"):
        connect("http://gateway:port", own=False)
    async with connect("localhost:8000", own=False) as http:
        with pytest.raises(StartError, match="there is no gateway at"):
            await client_of(http).check()


async def test_an_upload_bears_one_idempotency_key_however_often_it_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF-")
    in_flight = response(409, '{"code": "idempotency_in_flight", "detail": "wait", "retryable": true}')
    async with scripted(None, in_flight, response(202, '{"id": "1"}')) as (client, script):
        for _ in range(2):
            await client.post(file, {})
    keys = [header_of(request, "idempotency-key") for request in script.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert None not in keys


async def test_the_key_goes_to_a_server_but_not_to_a_gateway_of_our_own() -> None:
    async with scripted(response(200, "{}")) as (_, script):
        for own in (False, True):
            async with connect(script.url, own=own, api_key="secret") as http:
                await client_of(http).check()
    assert {header_of(request, "authorization") for request in script.requests[:2]} == {"Bearer secret"}
    assert {header_of(request, "authorization") for request in script.requests[2:]} == {None}


@pytest.mark.parametrize(
    ("status", "code", "api_key", "match"),
    [
        (401, "unauthorized", None, "set PAGEFLEET_API_KEY"),
        (401, "unauthorized", "secret", "does not take the API key in PAGEFLEET_API_KEY: not known"),
        (403, "forbidden", "secret", "refuses this: not known"),
    ],
)
async def test_a_server_that_wants_another_key_is_told_at_once_and_ends_all(
    tmp_path: Path, status: int, code: str, api_key: str | None, match: str
) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF-")
    refusal = response(status, f'{{"code": "{code}", "detail": "not known"}}')
    async with (
        scripted(response(200, "{}"), refusal) as (_, script),
        connect(script.url, own=False, api_key=api_key) as http,
    ):
        with pytest.raises(StartError, match=match) as caught:
            await client_of(http).check()
        with pytest.raises(KeyRefused, match=match):
            await client_of(http).post(file, {})
    assert "secret" not in caught.value.detail


async def test_what_a_proxy_forbids_ends_one_file_only(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(b"%PDF-")
    async with scripted(response(403, "<html>no</html>")) as (client, _):
        with pytest.raises(Refused):
            await client.post(file, {})


async def test_a_server_that_is_busy_is_a_server() -> None:
    busy = response(503, '{"code": "store_unavailable", "detail": "away"}')
    async with scripted(response(200, "{}"), busy) as (client, _):
        await client.check()


async def test_links_are_followed_under_the_prefix_of_an_ingress() -> None:
    async with scripted(response(204, "")) as (_, script), connect(f"{script.url}/prefix", own=True) as http:
        await client_of(http).delete({"links": {"self": "/prefix/documents/1"}})
    assert script.requests[0].startswith("DELETE /prefix/documents/1 ")
