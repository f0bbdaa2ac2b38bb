"""Real OCR by real replicas, from the upload to the text."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.pdfs import text_pdf
from tests.system.gateway import running_gateway

SAMPLE = Path(__file__).parents[2] / "docs" / "sample.pdf"

LETTERS = [
    text_pdf(["The first letter speaks of harbours.", "Its second page names 12 ships."], (300, 150)),
    text_pdf(["A second letter, about mountains.", "It ends with 4810 metres."], (300, 150)),
]


async def test_two_documents_at_once_come_out_as_they_do_one_by_one(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, environment={"PAGEFLEET_CPU_REPLICAS": "2"}) as gateway:
        alone = []
        for letter in LETTERS:
            document = await gateway.post(letter)
            await gateway.ended(document["id"])
            alone.append(await gateway.texts(document["id"]))
        documents = await asyncio.gather(*(gateway.post(letter) for letter in LETTERS))
        await asyncio.gather(*(gateway.ended(document["id"]) for document in documents))
        together = [await gateway.texts(document["id"]) for document in documents]
    assert together == alone
    assert alone == [
        {1: "The first letter speaks of harbours.", 2: "Its second page names 12 ships."},
        {1: "A second letter, about mountains.", 2: "It ends with 4810 metres."},
    ]


async def run(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", *arguments), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_the_ocr_command_prints_the_sample_and_leaves_nothing_running() -> None:
    status, out, _ = await run("ocr", str(SAMPLE))
    assert status == 0
    assert "# A Fleet for Pages" in out
    assert "# What Happens to a Document" in out
    assert "The harbour office opens at 7:45 and closes at 16:30 from Monday to Friday." in out
    assert out.index("A Fleet for Pages") < out.index("A Scanned Page")


async def test_the_ocr_command_says_what_it_could_not_read(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.pdf", tmp_path / "bad.pdf"
    good.write_bytes(LETTERS[0])
    bad.write_bytes(b"not a PDF")
    async with running_gateway(tmp_path / "data") as gateway:
        status, out, err = await run("ocr", "--server", str(gateway.client.base_url), str(bad), str(good))
    assert status == 1
    assert f"{bad}: unsupported_type:" in err
    assert f"==> {good} <==\nThe first letter speaks of harbours." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ocr", "no-such-file.pdf"], "no such file: no-such-file.pdf"),
        (["serve", "--host", "0.0.0.0", "--port", "0"], "PAGEFLEET_ALLOW_ANONYMOUS"),
        (["serve", "--endpoint", "ftp://x"], "endpoints"),
        (["replicas", "up", "--engine", "vllm"], "vllm"),
    ],
)
async def test_what_can_not_start_says_why_in_one_line(arguments: list[str], message: str) -> None:
    status, _, err = await run(*arguments)
    assert status == 2
    assert err.startswith("pagefleet: ")
    assert message in err
    assert "Traceback" not in err
