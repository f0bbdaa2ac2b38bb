"""`pagefleet ocr`: read files through a gateway and print their text as it streams."""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from httpx_sse import aconnect_sse

from app import lifeline
from app.errors import StartError

STOP_SECONDS = 60
READY_LINE = "pagefleet listening on "


async def ocr(files: Sequence[Path], server: str | None) -> int:
    """Read `files` and print their text in page order; 0 if every page was read, else 1.

    `server`: base URL of a running gateway; None starts one of its own and stops it at the end.
    """
    for file in files:
        if not file.is_file():
            raise StartError(f"no such file: {file}")
    async with _gateway(server) as base_url, httpx.AsyncClient(base_url=base_url, timeout=None) as client:
        documents = [await _post(client, file) for file in files]
        whole = [
            await _print_text(client, file, document, titled=len(files) > 1)
            for file, document in zip(files, documents, strict=True)
        ]
    return 0 if all(whole) else 1


@asynccontextmanager
async def _gateway(server: str | None) -> AsyncIterator[str]:
    if server is not None:
        yield server
        return
    with tempfile.TemporaryDirectory(prefix="pagefleet-") as data_dir:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app", "serve", "--port", "0", "--data-dir", data_dir),
            stdout=asyncio.subprocess.PIPE,
            env={"PAGEFLEET_LOG_LEVEL": "warning", **lifeline.child_environment()},
        )
        try:
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode()
            if not line.startswith(READY_LINE):
                raise StartError("the gateway did not start; its own message stands above")
            yield line.removeprefix(READY_LINE).strip()
        finally:
            await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _post(client: httpx.AsyncClient, file: Path) -> dict[str, Any] | None:
    """The accepted document; None, and a line on standard error, when the file is refused."""
    with file.open("rb") as stream:
        response = await client.post("/documents", files={"file": (file.name, stream)})
    body: dict[str, Any] = response.json()
    if response.is_success:
        return body
    print(f"{file}: {body['code']}: {body['detail']}", file=sys.stderr)
    return None


async def _print_text(client: httpx.AsyncClient, file: Path, document: dict[str, Any] | None, *, titled: bool) -> bool:
    """Print the pages of a document as they come, in page order; whether all were read."""
    if document is None:
        return False
    if titled:
        print(f"==> {file} <==", flush=True)
    async with aconnect_sse(client, "GET", document["links"]["events"], params={"order": "page"}) as source:
        async for event in source.aiter_sse():
            data = json.loads(event.data)
            if event.event == "page":
                _print_page(file, data["page"])
            elif event.event == "end":
                return bool(data["document"]["state"] == "succeeded")
    print(f"{file}: the stream was cut", file=sys.stderr)
    return False


def _print_page(file: Path, page: dict[str, Any]) -> None:
    if page["error"]:
        print(f"{file}: page {page['page']}: {page['error']['code']}: {page['error']['detail']}", file=sys.stderr)
    else:
        print(page["text"], end="\n\n", flush=True)
