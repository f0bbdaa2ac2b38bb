"""`pagefleet ocr` as its users run it: a process with a standard output, an exit status and signals."""

import asyncio
import errno
import json
import os
import pty
import signal
import sys
import termios
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.pdfs import numbered_pdf
from tests.processes import children, is_alive
from tests.standins import Reply, StandIn
from tests.system.gateway import END_SECONDS, running_gateway
from tests.waiting import until

SAMPLE = Path(__file__).parents[2] / "docs" / "sample.pdf"


@asynccontextmanager
async def running(
    *arguments: str | Path, endpoints: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command in a process group of its own; its gateway, if it starts one, uses `endpoints`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", *map(str, arguments)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PAGEFLEET_ENDPOINTS": ",".join(endpoints), **(environment or {})},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


async def finished(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command that runs to its end."""
    out, err = await asyncio.wait_for(process.communicate(), END_SECONDS)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def run(
    *arguments: str | Path, endpoints: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    async with running(*arguments, endpoints=endpoints, environment=environment) as process:
        return await finished(process)


def descendants(pid: int) -> list[int]:
    """The gateway that a command has started, and the processes of that gateway."""
    found = children(pid)
    return found + [below for child in found for below in descendants(child)]


def write_pdfs(folder: Path, count: int, pages: int) -> None:
    """Files whose pages all differ from each other."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:02}.pdf").write_bytes(numbered_pdf(pages, f"F{number} PAGE"))


def outputs(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith(".")}


def is_whole(text: str, pages: int) -> bool:
    return [f"<!-- page {page} -->" in text for page in range(1, pages + 2)] == [True] * pages + [False]


async def test_the_sample_is_printed_by_real_replicas_and_nothing_is_left_running() -> None:
    async with running("ocr", SAMPLE) as process:
        await until(lambda: len(descendants(process.pid)) > 1)
        started = descendants(process.pid)
        status, out, _ = await finished(process)
    assert status == 0
    assert "# A Fleet for Pages" in out
    assert "# What Happens to a Document" in out
    assert "The harbour office opens at 7:45 and closes at 16:30 from Monday to Friday." in out
    assert out.index("A Fleet for Pages") < out.index("A Scanned Page")
    assert not any(map(is_alive, started))


async def test_what_could_not_be_read_is_told_and_stops_nothing_else(tmp_path: Path) -> None:
    bad, good, away = tmp_path / "bad.pdf", tmp_path / "good.pdf", tmp_path / "away.pdf"
    bad.write_bytes(b"not a PDF")
    good.write_bytes(numbered_pdf(2))
    away.write_bytes(b"")
    async with (
        StandIn(text=lambda _: "A letter.") as replica,
        running_gateway(tmp_path / "data", [replica.url]) as gateway,
    ):
        server = str(gateway.client.base_url)
        replica.plan(Reply(status=400))
        status, out, err = await run("ocr", "--server", server, bad, good, away)
        assert (await gateway.client.get("/documents")).json()["documents"][0]["state"] == "partial"
    assert status == 1
    assert f"{bad}: unsupported_type: " in err
    assert f"{away}: empty_file: " in err
    assert f"{good}: page " in err
    assert out == f"==> {good} <==\nA letter.\n\n"


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("md", "Text.\n\nText.\n\n"),
        ("txt", "Text.\n\fText.\n\f"),
    ],
)
async def test_text_formats_and_page_ranges(tmp_path: Path, format: str, expected: str) -> None:
    file = tmp_path / "file.pdf"
    file.write_bytes(numbered_pdf(5))
    async with StandIn(text=lambda _: "Text.") as replica:
        status, out, err = await run("ocr", "--format", format, "--pages", "2,r1", file, endpoints=[replica.url])
    assert (status, out, len(replica.calls)) == (0, expected, 2)
    assert err.startswith(f"[1/1] {file}: 2 of 2 pages read, ")


async def test_formats_for_programs_stay_machine_readable_with_several_files(tmp_path: Path) -> None:
    write_pdfs(tmp_path / "in", count=2, pages=2)
    async with StandIn() as replica, running_gateway(tmp_path / "data", [replica.url]) as gateway:
        arguments = ("ocr", "--server", str(gateway.client.base_url), tmp_path / "in")
        lines = (await run(*arguments, "--format", "ndjson"))[1].splitlines()
        documents = (await run(*arguments, "--format", "json"))[1]
    pages = [(Path(page["file"]).name, page["page"]) for page in map(json.loads, lines)]
    assert pages == [("00.pdf", 1), ("00.pdf", 2), ("01.pdf", 1), ("01.pdf", 2)]
    first, end = json.JSONDecoder().raw_decode(documents)
    second = json.loads(documents[end:])
    assert [result["document"]["filename"] for result in (first, second)] == ["00.pdf", "01.pdf"]
    assert [len(result["pages"]) for result in (first, second)] == [2, 2]


async def test_a_folder_killed_half_way_and_run_again_reads_nothing_twice_that_was_done(tmp_path: Path) -> None:
    write_pdfs(tmp_path / "in", count=20, pages=2)
    target = tmp_path / "out"
    arguments = ("ocr", tmp_path / "in", "--output-dir", target)
    async with StandIn(slots=2, seconds=0.1) as replica:
        environment = {"TMPDIR": str(tmp_path)}  # what the killed gateway leaves
        async with running(*arguments, endpoints=[replica.url], environment=environment) as process:
            await until(lambda: replica.running == 2)
            started = descendants(process.pid)
            assert started
            await until(lambda: len(outputs(target)) >= 8)
            process.kill()
            await process.wait()
            await until(lambda: not any(map(is_alive, started)), seconds=10)
            await until(lambda: replica.open_connections == 0)
        done = outputs(target)
        assert 8 <= len(done) < 20
        before = len(replica.calls)
        status, _, err = await run(*arguments, endpoints=[replica.url])
        after = outputs(target)
        third = await run(*arguments, endpoints=[replica.url])
    assert status == 0
    assert f"{len(done)} of 20 files skipped" in err
    assert sorted(after) == [f"{number:02}.md" for number in range(20)]
    assert all(is_whole(text, pages=2) for text in after.values())
    assert {name: after[name] for name in done} == done
    images = Counter(call.image_sha256 for call in replica.calls[before:])
    assert set(images.values()) == {1}
    assert len(images) == 2 * (20 - len(done))
    assert third[0] == 0
    assert len(replica.calls) == before + len(images)


async def test_a_document_with_a_failed_page_is_written_as_partial_until_it_is_whole(tmp_path: Path) -> None:
    write_pdfs(tmp_path / "in", count=1, pages=2)
    target = tmp_path / "out"
    arguments = ("ocr", tmp_path / "in", "--output-dir", target)
    async with StandIn() as replica:
        replica.plan(Reply(status=400))
        status, _, err = await run(*arguments, endpoints=[replica.url])
        (partial,) = outputs(target).items()
        assert status == 1
        assert "1 of 2 pages read" in err
        assert partial[0] == "00.partial.md"
        assert "failed: replica_error -->" in partial[1]
        status, _, _ = await run(*arguments, endpoints=[replica.url])
        assert status == 0
        assert list(outputs(target)) == ["00.md"]


async def test_the_folder_structure_is_kept_and_overwrite_reads_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_pdfs(tmp_path / "in" / "2024", count=1, pages=1)
    target = tmp_path / "out"
    arguments = ("ocr", tmp_path / "in", "--output-dir", target, "--format", "txt")
    async with StandIn(text=lambda call: f"Call {call.number}.") as replica:
        await run(*arguments, endpoints=[replica.url])
        assert (target / "2024" / "00.txt").read_text() == "Call 1.\n\f"
        await run(*arguments, "--overwrite", endpoints=[replica.url])
        assert (target / "2024" / "00.txt").read_text() == "Call 2.\n\f"


async def test_a_gateway_killed_and_started_again_costs_the_reader_no_page_and_repeats_none(tmp_path: Path) -> None:
    file, data_dir = tmp_path / "file.pdf", tmp_path / "data"
    file.write_bytes(numbered_pdf(30))
    async with StandIn(slots=1, seconds=0.1) as replica, running_gateway(data_dir, [replica.url]) as gateway:
        server = gateway.client.base_url
        async with running("ocr", "--format", "ndjson", "--server", str(server), file) as process:
            assert process.stdout is not None
            first = (await process.stdout.readline()).decode()
            await gateway.kill()
            async with running_gateway(data_dir, [replica.url], port=server.port or 0):
                status, rest, err = await finished(process)
    assert status == 0
    assert [json.loads(line)["page"] for line in (first + rest).splitlines()] == list(range(1, 31))
    assert "the server does not answer" in err


async def test_uploads_wait_for_a_full_queue(tmp_path: Path) -> None:
    write_pdfs(tmp_path / "in", count=3, pages=2)
    async with StandIn(slots=1, seconds=0.1) as replica:
        environment = {"PAGEFLEET_MAX_QUEUED_PAGES": "2"}
        status, _, err = await run(
            *("ocr", tmp_path / "in", "--output-dir", tmp_path / "out"),
            endpoints=[replica.url],
            environment=environment,
        )
    assert (status, len(outputs(tmp_path / "out"))) == (0, 3)
    assert "queue_full" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupt_stops_the_own_gateway_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    write_pdfs(tmp_path / "in", count=3, pages=5)
    async with StandIn(slots=1, seconds=60) as replica:
        replica.plan(Reply(seconds=0))
        environment = {"TMPDIR": str(tmp_path)}
        async with running("ocr", tmp_path / "in", endpoints=[replica.url], environment=environment) as process:
            assert process.stdout is not None
            await process.stdout.readline()
            await until(lambda: replica.running == 1)
            started = descendants(process.pid)
            assert started
            os.killpg(process.pid, number)
            status, _, err = await finished(process)
    assert status == 130
    assert "Traceback" not in err
    assert not any(map(is_alive, started))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


async def test_the_death_of_the_own_gateway_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "file.pdf"
    file.write_bytes(numbered_pdf(5))
    async with StandIn(slots=1, seconds=60) as replica, running("ocr", file, endpoints=[replica.url]) as process:
        await until(lambda: replica.running == 1)
        os.kill(children(process.pid)[0], signal.SIGKILL)
        status, _, err = await finished(process)
    assert status == 1
    assert err.endswith("pagefleet: the gateway that this command started has ended; its own message stands above\n")


async def test_an_interrupt_leaves_documents_on_a_foreign_server_to_go_on(tmp_path: Path) -> None:
    file = tmp_path / "file.pdf"
    file.write_bytes(numbered_pdf(5))
    async with (
        StandIn(slots=1, seconds=0.2) as replica,
        running_gateway(tmp_path / "data", [replica.url]) as gateway,
    ):
        async with running("ocr", "--server", str(gateway.client.base_url), file) as process:
            assert process.stdout is not None
            await process.stdout.readline()
            os.killpg(process.pid, signal.SIGINT)
            assert (await finished(process))[0] == 130
        (document,) = (await gateway.client.get("/documents")).json()["documents"]
        assert (await gateway.ended(document["id"]))["state"] == "succeeded"


async def test_a_reader_of_the_text_that_leaves_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "file.pdf"
    file.write_bytes(numbered_pdf(20))
    async with StandIn(slots=1, seconds=0.1) as replica, running("ocr", file, endpoints=[replica.url]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        await process.stdout.readline()
        started = descendants(process.pid)
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        err = (await asyncio.wait_for(process.stderr.read(), END_SECONDS)).decode()
        status = await process.wait()
    assert (status, err) == (1, "")
    assert started
    assert not any(map(is_alive, started))


async def test_a_terminal_shows_bars(tmp_path: Path) -> None:
    write_pdfs(tmp_path / "in", count=3, pages=2)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    async with StandIn(seconds=0.05) as replica:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app", "ocr", str(tmp_path / "in"), "--output-dir", str(tmp_path / "out")),
            stderr=theirs,
            env={**os.environ, "PAGEFLEET_ENDPOINTS": replica.url},
        )
        os.close(theirs)
        shown = await asyncio.to_thread(everything, ours)
        assert await asyncio.wait_for(process.wait(), END_SECONDS) == 0
    assert "documents: 100%" in shown
    assert "3/3" in shown
    assert "6/6" in shown
    assert "page/s" in shown


def everything(terminal: int) -> str:
    """What is written to a terminal until its last writer is gone."""
    parts = []
    with os.fdopen(terminal, "rb", buffering=0) as stream:
        try:
            while part := stream.read(4096):
                parts.append(part)
        except OSError as error:  # so Linux says that nobody has the other side open
            assert error.errno == errno.EIO
    return b"".join(parts).decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ocr", "no-such-file.pdf"], "no such file: no-such-file.pdf"),
        (["ocr", str(SAMPLE), "--overwrite"], "--output-dir"),
        (["ocr", str(SAMPLE), str(SAMPLE), "--output-dir", "/tmp"], "would both be written to"),
        (["ocr", str(SAMPLE), "--server", "http://127.0.0.1:1"], "there is no gateway at http://127.0.0.1:1"),
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
    assert len(err.splitlines()) == 1
