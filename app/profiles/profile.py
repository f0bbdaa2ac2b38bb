"""What a model family needs: the models it serves, its request, and how its answers are judged."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from app.documents.records import ImageSpec, Warn

_IMAGE = "@image@"


@dataclass(frozen=True, slots=True)
class Reading:
    """A good answer: the page's text as Markdown."""

    text: str
    warnings: tuple[Warn, ...] = ()
    confidence: float | None = None
    """0 to 1, where the engine says it."""


class Profile(Protocol):
    """One model family. Profiles hold no state: one object serves every page."""

    @property
    def name(self) -> str: ...

    @property
    def image(self) -> ImageSpec:
        """The image that the model wants of a page."""
        ...

    def serves(self, model: str) -> bool:
        """Whether an endpoint's model of this name can read pages of this profile."""
        ...

    def request(self, model: str) -> tuple[bytes, bytes]:
        """The chat-completions body before and after the image's base64 text."""
        ...

    def judge(self, text: str, finish_reason: str, extra: Mapping[str, Any]) -> Reading:
        """Turn an answer into a page's text; raises `PageError` when it is not good.

        `extra` is what the replica says of the page beside its text; it may hold anything.
        """
        ...


def chat_request(model: str, prompt: str, media_type: str, **parameters: Any) -> tuple[bytes, bytes]:
    """A streaming chat-completions body for one image, cut where the image's base64 text belongs.

    The base64 text, by far the largest part, is then sent as it came from the renderer: neither copied nor escaped.
    """
    content = [
        {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{_IMAGE}"}},
        {"type": "text", "text": prompt},
    ]
    body = {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "stream": True,
        "stream_options": {"include_usage": True},
        **parameters,
    }
    before, _, after = json.dumps(body, ensure_ascii=False).partition(_IMAGE)
    return before.encode(), after.encode()
