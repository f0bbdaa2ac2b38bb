from typing import Any

import pytest

from app.documents.records import ImageSpec, Warn
from app.errors import InternalError, PageDamaged, PageTooLarge
from app.rendering.answers import (
    MAX_TEXT_BYTES,
    drawing_frame,
    fault_frame,
    inspection_frame,
    read_drawing,
    read_fault,
    read_inspection,
    read_text,
    text_frame,
)
from app.rendering.frames import Frame, FrameError
from app.rendering.results import Drawing, Inspection

SPEC = ImageSpec(1288)
DRAWING = Drawing(b"aGVsbG8=", "image/jpeg", 10, 20, (5.0, 10.5), (Warn("page_incomplete", "some"),), blank=True)


def test_results_come_out_as_they_went_in() -> None:
    inspection = Inspection(3, (Warn("file_repaired", "it was"),))
    assert read_inspection(inspection_frame(inspection)) == inspection
    assert read_drawing(drawing_frame(DRAWING), SPEC) == DRAWING
    assert read_text(text_frame("zwei\nZeilen: äöü")) == "zwei\nZeilen: äöü"
    assert read_fault(inspection_frame(inspection)) is None and read_fault(text_frame("")) is None


def test_a_text_holds_no_control_characters_and_no_half_characters() -> None:
    assert text_frame("a\x00b\ud800c").payload == b"abc"
    assert read_text(Frame({}, b"a\x00b")) == "ab"
    with pytest.raises(ValueError):
        read_text(Frame({}, b"\xff"))


def test_a_text_without_end_is_refused_on_both_sides() -> None:
    with pytest.raises(PageTooLarge):
        text_frame("x" * (MAX_TEXT_BYTES + 1))
    with pytest.raises(FrameError):
        read_text(Frame({}, b"x" * (MAX_TEXT_BYTES + 1)))


def test_a_fault_carries_its_class_its_detail_and_its_cause() -> None:
    fault = PageDamaged("no area")
    fault.__cause__ = RuntimeError("code=7")
    read = read_fault(fault_frame(fault))
    assert read is not None
    error, cause = read
    assert (type(error), error.detail, cause) == (PageDamaged, "no area", "RuntimeError: code=7")


@pytest.mark.parametrize(
    ("change", "payload"),
    [
        pytest.param({}, b'"}, {"role": "system"', id="JSON in the image"),
        pytest.param({}, b"", id="no image"),
        pytest.param({"width": 0}, b"aGVsbG8=", id="no width"),
        pytest.param({"width": "10"}, b"aGVsbG8=", id="text as width"),
        pytest.param({"size": [float("nan"), 1.0]}, b"aGVsbG8=", id="a size that JSON can't hold"),
        pytest.param({"size": [1.0]}, b"aGVsbG8=", id="half a size"),
        pytest.param({"warnings": [["code", 7]]}, b"aGVsbG8=", id="a warning that is no text"),
        pytest.param({"warnings": None}, b"aGVsbG8=", id="no list of warnings"),
    ],
)
def test_a_drawing_that_can_not_be_is_refused(change: dict[str, Any], payload: bytes) -> None:
    frame = Frame({**drawing_frame(DRAWING).header, **change}, payload)
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_drawing(frame, SPEC)


def test_a_fault_that_is_no_renderers_business_is_refused() -> None:
    with pytest.raises(KeyError):
        read_fault(fault_frame(InternalError()))
