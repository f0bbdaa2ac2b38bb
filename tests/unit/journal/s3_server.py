"""A bucket in this process that fails as it is told: as much of S3 as small blobs need, without signatures."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

BUCKET = "books"
MODIFIED = "Mon, 30 Nov 2026 21:00:00 GMT"
PAGE = 2
"""Keys in one answer to a listing."""


class Fault(Enum):
    """What becomes of one request."""

    HANG = auto()
    """No answer."""
    CUT = auto()
    """Half of the answer, then the connection is closed."""
    BROKEN = 500
    REFUSED = 403
    NO_BUCKET = 404


@dataclass
class Bucket:
    objects: dict[str, bytes] = field(default_factory=dict)
    plan: deque[Fault] = field(default_factory=deque)
    """Faults of the next requests."""
    always: Fault | None = None
    """The fault of all requests after those."""
    requests: list[str] = field(default_factory=list)
    """Method and path of each."""

    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        """Status, further header line, body."""
        url = urlsplit(target)
        key = unquote(url.path).removeprefix(f"/{BUCKET}").strip("/")
        query = parse_qs(url.query, keep_blank_values=True)
        if method == "GET" and "list-type" in query:
            return 200, "", self._list(query)
        if method == "POST" and "delete" in query:
            (key,) = re.findall("<Key>(.*?)</Key>", body.decode())
            self.objects.pop(key, None)
            return 200, "", f"<DeleteResult><Deleted><Key>{key}</Key></Deleted></DeleteResult>".encode()
        if method == "PUT":
            self.objects[key] = body
            return 200, "", b""
        if key not in self.objects:
            return 404, "", b"<Error><Code>NoSuchKey</Code></Error>"
        data = self.objects[key]
        if "range" not in headers:
            return 200, "", data
        start = int(headers["range"].removeprefix("bytes=").split("-")[0])
        return 206, f"Content-Range: bytes {start}-{len(data) - 1}/{len(data)}\r\n", data[start:]

    def _list(self, query: dict[str, list[str]]) -> bytes:
        after = query.get("continuation-token", [""])[0]
        keys = sorted(key for key in self.objects if key.startswith(query["prefix"][0]) and key > after)
        more = f"<NextContinuationToken>{escape(keys[PAGE - 1])}</NextContinuationToken>" if len(keys) > PAGE else ""
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-30T21:00:00Z</LastModified>"
            f"<Size>{len(self.objects[key])}</Size></Contents>"
            for key in keys[:PAGE]
        )
        truncated = "true" if more else "false"
        return f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{more}{entries}</ListBucketResult>".encode()


@asynccontextmanager
async def running_bucket(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bucket]:
    """A bucket that obstore finds by the environment."""
    bucket = Bucket()
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while await _exchange(bucket, reader, writer):
                pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    try:
        yield bucket
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _exchange(bucket: Bucket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """One request and its answer; whether the connection stays open."""
    request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    method, target, _ = request.split()
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    bucket.requests.append(f"{method} {urlsplit(target).path}")
    fault = bucket.plan.popleft() if bucket.plan else bucket.always
    if fault is Fault.HANG:
        await asyncio.Event().wait()
    if fault in (Fault.BROKEN, Fault.REFUSED, Fault.NO_BUCKET):
        status, extra, answer = fault.value, "", b"<Error><Code>Secret</Code></Error>"
    else:
        status, extra, answer = await bucket.answer(method, target, headers, body)
    head = (
        f'HTTP/1.1 {status} S\r\n{extra}ETag: "1"\r\nLast-Modified: {MODIFIED}\r\nContent-Length: {len(answer)}\r\n\r\n'
    )
    cut = fault is Fault.CUT
    writer.write(head.encode() + (answer[: len(answer) // 2] if cut else answer))
    await writer.drain()
    return not cut
