"""Public bug reports as cases: every input of `tests/cases` against the real service with its own CPU replicas."""

import json
import time
import unicodedata
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes import children
from tests.system.gateway import Gateway, running_gateway

FOLDER = Path(__file__).parents[1] / "cases"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text())["cases"]

OCR_WRONG_CHARACTERS = 1 / 8
"""Share of characters that may be wrong on a page that is a picture."""
ERROR_WORDS = {
    "password or encrypted": ("password", "encrypted"),
    "no pages": ("no page",),
    "not a PDF": ("pdf",),
    "empty": ("empty",),
    "the field that is missing": ("`file`", "'file'"),
}
WARNING_CODES = {
    "file was repaired": "file_repaired",
    "XFA form content was not rendered": "xfa_form",
}


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    environment = {"PAGEFLEET_CPU_REPLICAS": "2"}
    async with running_gateway(tmp_path_factory.mktemp("data"), environment=environment) as gateway:
        await gateway.lanes_up(2)
        yield gateway


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
async def test_case(gateway: Gateway, case: dict[str, Any]) -> None:
    expect = case["expect"]
    limits = expect.get("limits", {})
    started = time.monotonic()
    response = await send(gateway, case)
    assert status_fits(response.status_code, expect["http"]), response.text
    if response.is_success:
        assert expect["outcome"] != "refused", response.text
        await check_document(gateway, response.json(), expect)
    else:
        assert "refused" in expect["outcome"], response.text
        check_refusal(response, expect)
    # A limit of the case is for the service; ten times as much keeps a slow machine from failing it.
    assert time.monotonic() - started < 10 * limits.get("seconds", 60)
    assert family_peak_mib(gateway) < limits.get("rss_mib", 2000)
    assert list((gateway.data_dir / "spool").glob("*")) == []
    if escaped := expect.get("no_file_named"):
        folders = [*gateway.data_dir.parents, *Path(__file__).parents, Path.cwd()]
        assert not any(path for folder in folders for path in folder.glob(escaped))
    assert (await gateway.client.get("/livez")).status_code == 200


async def test_the_password_of_case_f02_opens_it(gateway: Gateway) -> None:
    case = next(case for case in CASES if case["id"] == "F02")
    response = await send(gateway, case, password=case["expect"]["retry_with_password"])
    assert response.status_code == 202, response.text
    expect = {"outcome": "ok", "pages": 1, "text": case["expect"]["text_if_password_given"]}
    await check_document(gateway, response.json(), expect)


async def send(gateway: Gateway, case: dict[str, Any], **options: str) -> httpx.Response:
    body, how = (FOLDER / case["file"]).read_bytes(), case["send"]
    if how["kind"] == "raw":
        headers = {"Content-Type": how["content_type"]}
        return await gateway.client.post("/documents", content=body, headers=headers)
    part = (how["filename"], body, how["content_type"])
    return await gateway.client.post("/documents", files={how["field"]: part}, data=options)


def status_fits(status: int, patterns: list[str]) -> bool:
    return any(str(status) == pattern or f"{status // 100}xx" == pattern for pattern in patterns)


def check_refusal(response: httpx.Response, expect: dict[str, Any]) -> None:
    problem = response.json()
    assert problem["code"] not in ("internal_error", "request_error")
    if says := expect.get("error_says"):
        text = f"{problem['title']} {problem['detail']}".casefold()
        assert any(word in text for word in ERROR_WORDS[says]), text


async def check_document(gateway: Gateway, document: dict[str, Any], expect: dict[str, Any]) -> None:
    end = await gateway.ended(document["id"])
    response = await gateway.client.get(f"/documents/{document['id']}/result?format=json&partial=true")
    pages = {page["page"]: page for page in json.loads(response.content.decode("utf-8"))["pages"]}
    check_outcome(end, pages, expect)
    wrong = OCR_WRONG_CHARACTERS if expect.get("reading") == "ocr" else 0
    for kind in ("text", "text_if_accepted", "text_if_chinese_model"):
        for number, phrases in expect.get(kind, {}).items():
            text = pages[int(number)]["text"]
            assert all(contains(text, phrase, wrong) for phrase in phrases), (number, phrases, text)
    whole = "".join(page["text"] for page in pages.values())
    assert not any(contains(whole, phrase, 0) for phrase in expect.get("absent", []))
    assert not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in whole)
    check_blanks(pages, expect)
    for number, size in expect.get("page_size_pt", {}).items():
        assert pages[int(number)]["size"] == pytest.approx(size, abs=1)
    if name := expect.get("filename_back"):
        assert end["filename"] == name
    if wanted := expect.get("warning_must") or expect.get("warning_best"):
        assert WARNING_CODES[wanted] in {warning["code"] for warning in end["warnings"]}


def check_outcome(end: dict[str, Any], pages: dict[int, dict[str, Any]], expect: dict[str, Any]) -> None:
    count = expect.get("pages") or expect.get("pages_if_accepted")
    if count:
        assert sorted(pages) == list(range(1, count + 1))
    failed = [number for number, page in pages.items() if page["state"] != "succeeded"]
    if "pages_failed" in expect:
        assert failed == expect["pages_failed"]
        assert all(pages[number]["error"]["code"] for number in failed)
    elif "pages_may_fail" in expect:
        assert set(failed) <= set(expect["pages_may_fail"])
    elif expect["outcome"] == "ok":
        assert failed == []
    states = {"ok": {"succeeded"}, "partial": {"partial"}, "ok_or_partial": {"succeeded", "partial"}}
    assert end["state"] in states.get(expect["outcome"], {"succeeded", "partial", "failed"})


def check_blanks(pages: dict[int, dict[str, Any]], expect: dict[str, Any]) -> None:
    for number in expect.get("empty_pages", []):
        assert pages[number]["text"] == ""
    for number in expect.get("nearly_empty_pages", []):
        assert len(pages[number]["text"]) < 5


def contains(text: str, phrase: str, wrong: float) -> bool:
    """Whether `phrase` is somewhere in `text`, with a share of `wrong` characters at most."""
    haystack, needle = normalised(text), normalised(phrase)
    # Sellers' algorithm: edit distance of the needle to the best-fitting part of the haystack.
    row = list(range(len(needle) + 1))
    best = row[-1]
    for character in haystack:
        previous = row
        row = [0]
        for index, wanted in enumerate(needle, start=1):
            row.append(min(previous[index] + 1, row[-1] + 1, previous[index - 1] + (character != wanted)))
        best = min(best, row[-1])
    return best <= int(len(needle) * wrong)


@cache
def normalised(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def family_peak_mib(gateway: Gateway) -> float:
    """Largest resident size that the gateway or one of its children has had."""
    peaks = []
    for pid in [gateway.process.pid, *children(gateway.process.pid)]:
        status = Path(f"/proc/{pid}/status")
        if status.exists():
            lines = [line.split() for line in status.read_text().splitlines() if line.startswith("VmHWM")]
            peaks += [int(fields[1]) / 1024 for fields in lines]
    return max(peaks)
