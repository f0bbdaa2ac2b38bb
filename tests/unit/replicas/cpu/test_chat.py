import json
from typing import Any

import pytest

from app.documents.models import CPU_MODEL
from app.replicas.cpu.chat import ChatAnswer, ChatRequest
from app.replicas.cpu.errors import InvalidRequest, ModelNotFound
from tests.pages import chat_body

URL = "data:image/jpeg;base64,AAAA"
TEXT_ONLY = [{"role": "user", "content": "Hello"}]


def parse(body: Any) -> ChatRequest:
    return ChatRequest.parse(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("fields", "stream", "usage"),
    [
        ({}, False, False),
        ({"model": CPU_MODEL, "stream": True}, True, False),
        ({"stream": True, "stream_options": {"include_usage": True}, "temperature": 0}, True, True),
    ],
)
def test_a_request_with_one_image_is_understood(fields: dict[str, Any], stream: bool, usage: bool) -> None:
    assert parse(chat_body(URL, **fields)) == ChatRequest(URL, stream, usage)


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"messages": "Hello"},
        {"messages": ["Hello"]},
        {"messages": TEXT_ONLY},
        {"messages": chat_body(URL)["messages"] * 2},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": URL}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
    ],
)
def test_other_shapes_are_refused(body: Any) -> None:
    with pytest.raises(InvalidRequest):
        parse(body)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe\x00"])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="JSON"):
        ChatRequest.parse(body)


def test_another_model_is_not_found() -> None:
    with pytest.raises(ModelNotFound) as caught:
        parse(chat_body(URL, model="olmocr"))
    assert caught.value.body()["error"] == {
        "message": "The model `olmocr` does not exist.",
        "type": "NotFoundError",
        "param": "model",
        "code": 404,
    }


@pytest.mark.parametrize("text", ["", "one", "one\n\ntwo\n\nthree"])
def test_chunks_add_up_to_the_text_and_only_the_last_says_stop_and_how_the_page_was_read(text: str) -> None:
    chunks = list(ChatAnswer("engine").chunks(text, {"rotation": 90}))
    choices = [chunk["choices"][0] for chunk in chunks]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == text
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(chunks) - 1) + ["stop"]
    assert [chunk.get("pagefleet") for chunk in chunks] == [None] * (len(chunks) - 1) + [{"rotation": 90}]


def test_the_request_id_names_the_answer() -> None:
    assert ChatAnswer("engine", "job-7").whole("text", {})["id"] == "chatcmpl-job-7"
