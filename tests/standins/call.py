"""A chat-completions call as it arrived."""

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Call:
    """What costs time (JSON, the image) is found only when asked for."""

    number: int
    """Place in the order of arrival, from 1."""
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    size: int
    """Bytes of the body."""
    rank: int | None = None
    """The engine that got it; None: none did."""
    disconnected: bool = False
    """The client closed the connection before the answer was complete."""

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def streamed(self) -> bool:
        return b'"stream": true' in self.body or b'"stream":true' in self.body

    @property
    def image(self) -> bytes:
        """Bytes of the first image; empty if there is none."""
        return base64.b64decode(self.body.partition(b";base64,")[2].partition(b'"')[0])

    @property
    def image_sha256(self) -> str:
        return hashlib.sha256(self.image).hexdigest()


def name_call(call: Call) -> str:
    """The default text of an answer: names the call and its image."""
    return f"Call {call.number} read image {call.image_sha256[:16]}."
