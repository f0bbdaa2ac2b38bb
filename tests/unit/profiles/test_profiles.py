import base64
import json

import pytest

from app.documents.records import Warn
from app.errors import AnswerTruncated, AnswerUnparsable, ProfileUnknown
from app.profiles import Profiles
from app.settings import Settings


@pytest.fixture
def profiles() -> Profiles:
    return Profiles(Settings(prompt="Read “this”", longest_side_pixels=999, max_tokens=77))


def test_request_is_valid_json_around_the_image(profiles: Profiles) -> None:
    image = base64.b64encode(b"\xff\xd8 a picture")
    before, after = profiles["generic"].request('model "x"')

    body = json.loads(before + image + after)

    image_part, prompt_part = body["messages"][0]["content"]
    assert body["model"] == 'model "x"'
    assert image_part["image_url"]["url"] == f"data:image/jpeg;base64,{image.decode()}"
    assert prompt_part["text"] == "Read “this”"
    assert (body["max_tokens"], body["temperature"], body["stream"]) == (77, 0, True)
    assert profiles["generic"].image.longest_side_pixels == 999


def test_unknown_profile_names_the_known_ones(profiles: Profiles) -> None:
    with pytest.raises(ProfileUnknown, match="generic, cpu"):
        profiles["nope"]


@pytest.mark.parametrize(
    ("models", "name"),
    [([], None), (["pagefleet-cpu"], "cpu"), (["some/vlm"], "generic"), (["pagefleet-cpu", "some/vlm"], "generic")],
)
def test_auto_takes_the_preferred_profile_that_a_model_serves(
    profiles: Profiles, models: list[str], name: str | None
) -> None:
    assert profiles.for_models(models) == name


@pytest.mark.parametrize("name", ["generic", "cpu"])
def test_a_page_is_good_only_when_the_model_ended_it(profiles: Profiles, name: str) -> None:
    assert profiles[name].judge(" a\x00b\r\nc ", "stop", {}).text == "ab\nc"
    with pytest.raises(AnswerTruncated):
        profiles[name].judge("cut off he", "length", {})
    with pytest.raises(AnswerUnparsable):
        profiles[name].judge("text", "content_filter", {})


def test_the_embedded_server_says_how_sure_it_is(profiles: Profiles) -> None:
    extra = {"confidence": 0.75, "warnings": [{"code": "low_confidence", "detail": "a poor\x00 scan"}]}
    reading = profiles["cpu"].judge("text", "stop", extra)
    assert (reading.confidence, reading.warnings) == (0.75, (Warn("low_confidence", "a poor scan"),))


@pytest.mark.parametrize(
    "extra",
    [
        {"confidence": "high", "warnings": "none"},
        {"confidence": 7, "warnings": ["x", {"code": "y"}]},
        {"confidence": None},
    ],
)
def test_what_a_server_says_beside_the_text_is_not_trusted(profiles: Profiles, extra: dict[str, object]) -> None:
    reading = profiles["cpu"].judge("text", "stop", extra)
    assert (reading.confidence, reading.warnings) == (None, ())
