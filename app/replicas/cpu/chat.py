"""What a chat-completions request asks for, and the shapes of its answers: those of vLLM."""

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.documents.models import CPU_MODEL
from app.replicas.cpu.errors import InvalidRequest, ModelNotFound

FACTS_FIELD = "pagefleet"
"""Beside `choices`: what this server says about a page that chat completions have no place for."""

Facts = Mapping[str, Any]

_BLOCK_ENDS = re.compile(r"(?<=\n\n)")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One page to read. Prompt and sampling parameters mean nothing to an OCR engine and are ignored."""

    image_url: str
    stream: bool
    include_usage: bool

    @classmethod
    def parse(cls, body: bytes) -> "ChatRequest":
        """Raises `InvalidRequest`, and `ModelNotFound` for a model that is not ours; none means ours."""
        try:
            fields = json.loads(body)
        except ValueError as error:
            raise InvalidRequest(f"the body is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise InvalidRequest("the body is a JSON object")
        model = fields.get("model")
        if model not in (None, CPU_MODEL):
            raise ModelNotFound(f"The model `{model}` does not exist.", "model")
        options = fields.get("stream_options")
        return cls(
            image_url=_image_url(fields.get("messages")),
            stream=fields.get("stream") is True,
            include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )


def _image_url(messages: Any) -> str:
    urls = [_url(part) for part in _parts(messages) if part.get("type") == "image_url"]
    if len(urls) != 1:
        raise InvalidRequest(f"the messages hold {len(urls)} images; this server reads exactly one", "messages")
    return urls[0]


def _parts(messages: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise InvalidRequest("messages is a list of objects", "messages")
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            yield from (part for part in content if isinstance(part, dict))


def _url(part: dict[str, Any]) -> str:
    match part:
        case {"image_url": {"url": str(url)}}:
            return url
    raise InvalidRequest("an image_url part is {'type': 'image_url', 'image_url': {'url': '…'}}", "messages")


class ChatAnswer:
    """The answer to one request, whole or in chunks. Usage is zero: the engine has no tokens."""

    def __init__(self, fingerprint: str, request_id: str | None = None) -> None:
        """`fingerprint`: engine and model, sent as `system_fingerprint`."""
        self._head = {
            "id": f"chatcmpl-{request_id or uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": CPU_MODEL,
            "system_fingerprint": fingerprint,
        }

    def whole(self, text: str, facts: Facts) -> dict[str, Any]:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": None}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [{**choice, "finish_reason": "stop"}],
            "usage": _usage(),
            FACTS_FIELD: facts,
        }

    def opening(self) -> dict[str, Any]:
        """The chunk that carries the role: the first sign of life."""
        return self._chunk({"role": "assistant", "content": ""})

    def chunks(self, text: str, facts: Facts) -> Iterator[dict[str, Any]]:
        """A chunk a block of Markdown, then the one that ends the answer and carries the facts."""
        for block in _BLOCK_ENDS.split(text):
            if block:
                yield self._chunk({"content": block})
        yield {**self._chunk({}, finish_reason="stop"), FACTS_FIELD: facts}

    def usage(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": _usage()}

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
