"""The server's side of ASGI, for tests that call an application without a server."""

import asyncio
from collections.abc import Iterable, Mapping

from starlette.types import ASGIApp, Message, Scope


def scope_of(method: str = "GET", path: str = "/", headers: Mapping[str, str] | None = None) -> Scope:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8000),
    }


class Exchange:
    """One request: gives its body in parts, keeps what the application answers, and may leave."""

    def __init__(self, body: Iterable[bytes] = (b"",), *, endless: bool = False) -> None:
        """`endless`: after `body` nothing comes, and no end either."""
        self.sent: list[Message] = []
        self.left = asyncio.Event()
        parts = list(body)
        self._requests: list[Message] = [
            {"type": "http.request", "body": part, "more_body": endless or number < len(parts)}
            for number, part in enumerate(parts, start=1)
        ]

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        await app(scope, self.receive, self.send)

    async def receive(self) -> Message:
        if self._requests:
            return self._requests.pop(0)
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def unread(self) -> int:
        """Parts of the body that the application left."""
        return len(self._requests)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode("latin-1") for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def complete(self) -> bool:
        """Whether the answer has ended in order."""
        return bool(self.sent) and not self.sent[-1].get("more_body", self.sent[-1]["type"] == "http.response.start")
