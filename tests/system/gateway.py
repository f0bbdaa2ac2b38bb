"""The real program: `pagefleet serve` as a process of its own, spoken to over sockets."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from httpx_sse import ServerSentEvent, aconnect_sse

from tests.waiting import until

START_SECONDS = 60
"""Deadline for the start line."""
TAKING_PAGES = ("up", "probation", "half_open")
"""Lane states; a lane that comes back is half-open until it has read a page."""
END_SECONDS = 120
"""Deadline for anything that a test waits for; usually it takes a few seconds."""


@dataclass(slots=True)
class Gateway:
    process: asyncio.subprocess.Process
    client: httpx.AsyncClient
    data_dir: Path

    async def post(self, pdf: bytes, **options: str) -> dict[str, Any]:
        """Upload as multipart; the accepted document."""
        response = await self.client.post(
            "/documents", files={"file": ("test.pdf", pdf, "application/pdf")}, data=options
        )
        assert response.status_code == 202, response.text
        document: dict[str, Any] = response.json()
        return document

    async def follow(self, document_id: str, last_event_id: str | None = None, **query: str) -> "AsyncIterator[Event]":
        """The event stream, from a cursor if one is given, until its end."""
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        path = f"/documents/{document_id}/events"
        async with (
            asyncio.timeout(END_SECONDS),
            aconnect_sse(self.client, "GET", path, params=query, headers=headers) as source,
        ):
            source.response.raise_for_status()
            async for event in source.aiter_sse():
                yield Event(event)

    async def ended(self, document_id: str) -> dict[str, Any]:
        """Wait for the document's end; the document as the `end` event tells it."""
        events = [event async for event in self.follow(document_id)]
        assert events[-1].kind == "end"
        document: dict[str, Any] = events[-1].data["document"]
        return document

    async def texts(self, document_id: str) -> dict[int, str]:
        """Text by page number, from the JSON result."""
        response = await self.client.get(f"/documents/{document_id}/result", params={"format": "json"})
        response.raise_for_status()
        return {page["page"]: page["text"] for page in response.json()["pages"]}

    async def lanes(self) -> list[dict[str, Any]]:
        lanes: list[dict[str, Any]] = (await self.client.get("/lanes")).json()["lanes"]
        return lanes

    async def lanes_up(self, count: int) -> None:
        """Return when `count` lanes take pages."""

        async def up() -> bool:
            return sum(lane["state"] in TAKING_PAGES for lane in await self.lanes()) >= count

        await until(up)

    async def metric(self, line: str) -> float:
        """Value of the sample whose name and labels are `line`; 0 when it isn't there."""
        text = (await self.client.get("/metrics")).text
        return next((float(row.split()[-1]) for row in text.splitlines() if row.startswith(line + " ")), 0.0)

    async def kill(self) -> None:
        """`kill -9` of the gateway's pid alone."""
        self.process.kill()
        await self.process.wait()

    async def terminate(self) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), END_SECONDS)


class Event:
    """A server-sent event with its data parsed."""

    def __init__(self, event: ServerSentEvent) -> None:
        self.id = event.id
        self.kind = event.event
        self.data: dict[str, Any] = json.loads(event.data)

    @property
    def page(self) -> int | None:
        page: int | None = self.data["page"]["page"] if self.kind == "page" else None
        return page

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and (self.id, self.kind, self.data) == (other.id, other.kind, other.data)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.id} page={self.page}>"


@asynccontextmanager
async def running_gateway(
    data_dir: Path,
    endpoints: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    port: int = 0,
    logs: Path | None = None,
) -> AsyncIterator[Gateway]:
    """Start a gateway, with port 0 on a free one; it is killed at the end if it still runs.

    `logs`: the file for its standard error; None: the tests' own.
    """
    stderr = None if logs is None else logs.open("ab")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", "serve", "--port", str(port), "--data-dir", str(data_dir)),
        *(part for url in endpoints for part in ("--endpoint", url)),
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "PAGEFLEET_CPU_REPLICAS": "1", **(environment or {})},
    )
    if stderr is not None:
        stderr.close()
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), START_SECONDS)).decode()
        assert line.startswith("pagefleet listening on http://"), f"start line: {line!r}"
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(
            base_url=line.split()[-1], timeout=END_SECONDS, trust_env=False, limits=limits
        ) as client:
            yield Gateway(process, client, data_dir)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        # Closes the pipe's transport, which asyncio otherwise leaves to the garbage collector.
        process._transport.close()  # type: ignore[attr-defined]
