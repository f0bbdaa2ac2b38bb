"""Uploads to a real gateway, as curl and scripts send them."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pymupdf
import pytest

from tests.pdfs import numbered_pdf, text_pdf
from tests.standins import StandIn
from tests.system.gateway import Gateway, running_gateway
from tests.waiting import until

MAX_FILE_BYTES = 300_000


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    environment = {
        "PAGEFLEET_MAX_FILE_BYTES": str(MAX_FILE_BYTES),
        "PAGEFLEET_MAX_PAGES": "30",
        "PAGEFLEET_MAX_QUEUED_PAGES": "60",
    }
    async with (
        StandIn(text=lambda call: call.image_sha256) as replica,
        running_gateway(tmp_path_factory.mktemp("data"), [replica.url], environment) as gateway,
    ):
        await gateway.lanes_up(1)
        yield gateway


@pytest.fixture(autouse=True)
def nothing_is_left_behind(gateway: Gateway) -> Iterator[None]:
    yield
    assert list((gateway.data_dir / "spool").glob("*")) == []


def locked_pdf(password: str) -> bytes:
    document = pymupdf.open(stream=text_pdf(["SECRET"]))
    data: bytes = document.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=password, owner_pw="owner")
    return data


async def test_the_answer_has_the_documented_shape(gateway: Gateway) -> None:
    pdf = numbered_pdf(3)
    response = await gateway.client.post(
        "/documents",
        files={"file": ("../Prüfung.pdf", pdf)},
        data={"metadata": '{"a": 1}', "pages": "2-r1", "priority": "1"},
    )
    document = response.json()
    assert response.status_code == 202
    assert response.headers["location"] == document["links"]["self"] == f"/documents/{document['id']}"
    assert document.keys() == {
        *("id", "state", "filename", "bytes", "sha256", "profile", "created_at", "started_at", "ended_at"),
        *("expires_at", "pages", "progress", "warnings", "error", "metadata", "links"),
    }
    assert (document["filename"], document["bytes"]) == ("Prüfung.pdf", len(pdf))
    assert document["pages"]["total"] == 2
    assert (document["profile"], document["metadata"]) == ("generic", {"a": 1})
    await gateway.ended(document["id"])
    assert sorted(await gateway.texts(document["id"])) == [2, 3]


@pytest.mark.parametrize("content_type", ["application/pdf", "application/x-www-form-urlencoded", None])
async def test_any_other_body_is_the_file_itself(gateway: Gateway, content_type: str | None) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    response = await gateway.client.post("/documents?pages=1", content=numbered_pdf(2), headers=headers)
    assert (response.status_code, response.json()["pages"]["total"]) == (202, 1)


async def test_several_files_are_several_documents(gateway: Gateway) -> None:
    files = [("file", ("good.pdf", numbered_pdf(1))), ("file", ("bad.txt", b"no pdf at all"))]
    response = await gateway.client.post("/documents", files=files)
    good, bad = response.json()["documents"]
    assert response.status_code == 202
    assert good["filename"] == "good.pdf"
    assert bad["error"]["code"] == "unsupported_type"
    refused = await gateway.client.post("/documents", files=[files[1], files[1]])
    assert refused.status_code == 415


@pytest.mark.parametrize(
    ("body", "options", "status", "code"),
    [
        (b"", {}, 422, "empty_file"),
        (b"plain text", {}, 415, "unsupported_type"),
        (b"%PDF-1.7 and nothing else", {}, 422, "damaged_pdf"),
        (numbered_pdf(31), {}, 413, "too_many_pages"),
        (numbered_pdf(2), {"pages": "3"}, 422, "page_range_invalid"),
        (numbered_pdf(2), {"colour": "blue"}, 422, "option_unknown"),
        (numbered_pdf(2), {"profile": "nope"}, 422, "profile_unknown"),
        (numbered_pdf(2), {"priority": "9"}, 422, "option_invalid"),
        (locked_pdf("sesame"), {}, 422, "password_required"),
        (locked_pdf("sesame"), {"password": "wrong"}, 422, "password_wrong"),
    ],
)
async def test_what_can_not_be_read_is_refused_at_once(
    gateway: Gateway, body: bytes, options: dict[str, str], status: int, code: str
) -> None:
    response = await gateway.client.post("/documents", files={"file": ("f.pdf", body)}, data=options)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "code", "retryable"} <= problem.keys()


async def test_a_password_opens_and_is_never_shown(gateway: Gateway) -> None:
    document = await gateway.post(locked_pdf("sesame-4711"), password="sesame-4711")
    end = await gateway.ended(document["id"])
    assert end["state"] == "succeeded"
    assert "sesame-4711" not in json.dumps(end)


async def test_a_chunked_body_over_the_limit_is_refused_while_it_comes(gateway: Gateway) -> None:
    reader, writer = await connect(gateway)
    writer.write(b"POST /documents HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    body = b"%PDF-1.7\n" + b"x" * MAX_FILE_BYTES
    writer.write(b"%x\r\n%b\r\n" % (len(body), body))  # and more to come
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in head.lower()
    writer.close()


async def test_a_client_that_reads_only_after_it_has_sent_gets_the_refusal(gateway: Gateway) -> None:
    async def too_much() -> AsyncIterator[bytes]:
        yield b"%PDF-1.7\n"
        for _ in range(60):
            yield b"x" * (MAX_FILE_BYTES // 10)

    response = await gateway.client.post("/documents", content=too_much())
    assert (response.status_code, response.json()["code"]) == (413, "file_too_large")
    assert response.json()["limit"] == MAX_FILE_BYTES


async def connect(gateway: Gateway) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(gateway.client.base_url.host, gateway.client.base_url.port)


async def test_a_client_that_leaves_in_the_middle_leaves_nothing(gateway: Gateway) -> None:
    _, writer = await asyncio.open_connection(gateway.client.base_url.host, gateway.client.base_url.port)
    writer.write(
        b"POST /documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n%PDF-1.7" + b"x" * 99_000
    )
    await writer.drain()
    await until(lambda: any((gateway.data_dir / "spool").glob("*")))
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.close()
    await until(lambda: not any((gateway.data_dir / "spool").glob("*")))


async def test_a_full_queue_is_told(tmp_path: Path) -> None:
    environment = {"PAGEFLEET_MAX_QUEUED_PAGES": "10"}
    async with running_gateway(tmp_path, ["http://127.0.0.1:9"], environment) as gateway:
        await gateway.post(numbered_pdf(8))  # accepted though no lane is up: pages wait
        response = await gateway.client.post("/documents", files={"file": numbered_pdf(3)})
        assert (response.status_code, response.json()["code"]) == (429, "queue_full")
        assert int(response.headers["retry-after"]) >= 1
        assert (await gateway.client.get("/readyz")).json() == {"status": "ready", "lanes_up": 0}
        assert (await gateway.client.get("/readyz?lanes=1")).status_code == 503


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/documents/nope", 404, "not_found"),
        ("GET", "/documents/nope/result", 404, "not_found"),
        ("POST", "/documents/nope/cancel", 404, "not_found"),
        ("GET", "/nothing/here", 404, "not_found"),
        ("PUT", "/documents", 405, "method_not_allowed"),
    ],
)
async def test_every_error_is_a_problem(gateway: Gateway, method: str, path: str, status: int, code: str) -> None:
    response = await gateway.client.request(method, path)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"


async def test_results_are_negotiated(gateway: Gateway) -> None:
    document = await gateway.post(numbered_pdf(2))
    early = await gateway.client.get(document["links"]["result"])
    await gateway.ended(document["id"])
    markdown = await gateway.client.get(document["links"]["result"])
    by_accept = await gateway.client.get(document["links"]["result"], headers={"Accept": "application/json"})
    refused = await gateway.client.get(document["links"]["result"], headers={"Accept": "image/png"})
    if early.status_code != 200:  # the stand-in answers at once
        assert (early.status_code, early.json()["code"]) == (409, "not_ended")
        assert int(early.headers["retry-after"]) >= 1
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert markdown.text.index("<!-- page 1 -->") < markdown.text.index("<!-- page 2 -->")
    assert by_accept.json()["schema"] == "pagefleet.result/1"
    assert [page["page"] for page in by_accept.json()["pages"]] == [1, 2]
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")


async def test_head_is_answered_like_get(gateway: Gateway) -> None:
    document = await gateway.post(numbered_pdf(1))
    await gateway.ended(document["id"])
    for path in (document["links"]["self"], document["links"]["result"], "/lanes", "/livez", "/readyz", "/metrics"):
        head, get = await gateway.client.head(path), await gateway.client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == get.headers["content-type"]


@pytest.mark.parametrize("host", ["attacker.example", "[::1", "[attacker]", ""])
async def test_only_loopback_hosts_are_served_without_keys(gateway: Gateway, host: str) -> None:
    foreign = {"Host": host}
    refused = await gateway.client.get("/lanes", headers=foreign)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert (await gateway.client.get("/livez", headers=foreign)).status_code == 200


async def test_a_request_id_is_echoed_or_made(gateway: Gateway) -> None:
    given = await gateway.client.get("/livez", headers={"X-Request-Id": "job-7"})
    made = await gateway.client.get("/livez")
    assert given.headers["x-request-id"] == "job-7"
    assert made.headers["x-request-id"]


async def test_the_api_describes_itself(gateway: Gateway) -> None:
    assert (await gateway.client.get("/docs")).status_code == 200
    paths = (await gateway.client.get("/openapi.json")).json()["paths"]
    assert {
        "/documents",
        "/documents/{document_id}/events",
        "/documents/{document_id}/result",
        "/lanes",
    } <= paths.keys()


async def test_metrics_tell_of_documents_pages_lanes_and_attempts(gateway: Gateway) -> None:
    before = await gateway.metric('pagefleet_pages_ended_total{code="",state="succeeded"}')
    document = await gateway.post(numbered_pdf(5))
    await gateway.ended(document["id"])
    (lane,) = await gateway.lanes()
    assert await gateway.metric('pagefleet_pages_ended_total{code="",state="succeeded"}') == before + 5
    assert await gateway.metric(f'pagefleet_attempts_total{{lane="{lane["id"]}",outcome="succeeded"}}') >= 5
    assert await gateway.metric(f'pagefleet_lane_up{{lane="{lane["id"]}"}}') == 1
    assert await gateway.metric(f'pagefleet_lane_inflight_attempts{{lane="{lane["id"]}"}}') == 0
