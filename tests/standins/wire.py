"""The bodies of vLLM's answers, as seen in 0.32."""

from http import HTTPStatus
from typing import Any

WEB_PAGE = "<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>"
GARBAGE = bytes(range(128, 256)) * 4

ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
SHUTTING_DOWN = "cannot schedule new futures after shutdown"
QUEUE_FULL = (
    "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
)


def chunk(
    number: int,
    model: str,
    delta: dict[str, str] | None,
    finish_reason: str | None = None,
    usage: dict[str, int] | None = None,
) -> dict[str, Any]:
    """One event of the streamed answer to call `number`; `delta` None: without a choice."""
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "model": model,
        "choices": [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        "usage": usage,
    }


def completion(number: int, model: str, text: str | None, finish_reason: str) -> dict[str, Any]:
    """The whole answer to call `number`; `text` None: without a choice."""
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "model": model,
        "choices": [] if text is None else [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": usage(text or ""),
    }


def usage(text: str) -> dict[str, int]:
    words = len(text.split())
    return {"prompt_tokens": 100, "completion_tokens": words, "total_tokens": 100 + words}


def error(status: int, message: str | None = None) -> dict[str, Any]:
    phrase = HTTPStatus(status).phrase
    return {"error": {"message": message or phrase, "type": phrase.replace(" ", ""), "param": None, "code": status}}


def split(text: str, parts: int) -> list[str]:
    length = max(1, -(-len(text) // parts))
    return [text[start : start + length] for start in range(0, len(text), length)] or [""]
