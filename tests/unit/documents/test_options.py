import json

import pytest

from app.documents.options import MAX_METADATA_DEPTH, Options
from app.errors import OptionInvalid, OptionUnknown


def test_defaults() -> None:
    assert Options.parse({}) == Options(priority=3)
    assert Options.parse({"pages": "", "profile": "auto", "metadata": ""}) == Options()


def test_values() -> None:
    options = Options.parse({"pages": "1-2", "priority": "0", "metadata": '{"a": [1]}', "password": "x"})
    assert (options.pages, options.priority, options.metadata, options.password) == ("1-2", 0, {"a": [1]}, "x")


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(Options.parse({"password": "secret"}))


@pytest.mark.parametrize("priority", ["8", "-1", "high", "1.5", "³"])
def test_a_priority_out_of_range_is_refused(priority: str) -> None:
    with pytest.raises(OptionInvalid) as caught:
        Options.parse({"priority": priority})
    assert caught.value.problem()["option"] == "priority"


@pytest.mark.parametrize("metadata", ["[]", "nope", '{"a": "%s"}' % ("x" * 4096)])
def test_metadata_is_a_json_object_of_bounded_size(metadata: str) -> None:
    with pytest.raises(OptionInvalid):
        Options.parse({"metadata": metadata})


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(OptionUnknown, match="colour"):
        Options.parse({"colour": "blue"})


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"":', "}"), ('[1, {"a": ', "}]")])
def test_metadata_is_nested_no_deeper_than_everybody_can_read(begin: str, end: str) -> None:
    def nested(depth: int) -> str:
        return '{"a": %s}' % (begin * depth + "1" + end * depth)

    levels = begin.count("[") + begin.count("{")
    deepest = MAX_METADATA_DEPTH // levels - 1
    assert Options.parse({"metadata": nested(deepest)}).metadata == json.loads(nested(deepest))
    for depth in (MAX_METADATA_DEPTH // levels, 300):
        with pytest.raises(OptionInvalid, match="nested too deep"):
            Options.parse({"metadata": nested(depth)})


@pytest.mark.parametrize("name", ["pages", "profile", "password", "metadata", "ttl"])
@pytest.mark.parametrize("character", ["\0", "\ud83d"])
def test_what_is_no_text_is_refused_in_every_option(name: str, character: str) -> None:
    with pytest.raises(OptionInvalid) as caught:
        Options.parse({name: f"a{character}b"})
    assert caught.value.problem()["option"] == name


@pytest.mark.parametrize(
    "metadata", [r'{"a": "x\u0000"}', r'{"\u0000": 1}', r'{"a": ["\\\u0000"]}', r'{"a": "\udc00"}']
)
def test_what_is_no_text_is_refused_within_metadata(metadata: str) -> None:
    with pytest.raises(OptionInvalid):
        Options.parse({"metadata": metadata})


def test_a_backslash_in_metadata_is_text_whatever_follows_it() -> None:
    assert Options.parse({"metadata": r'{"a": "\\u0000"}'}).metadata == {"a": r"\u0000"}
