"""What a render process answers: written there, read and checked by the gateway, which does not trust it."""

import string
from math import isfinite
from typing import Any

from app.documents.records import ImageSpec, Warn
from app.documents.text import clean_text
from app.errors import (
    DamagedImage,
    DamagedPdf,
    ImageTooLarge,
    NoPages,
    PageDamaged,
    PagefleetError,
    PageTooLarge,
    PasswordRequired,
    PasswordWrong,
    PdfLocked,
    RenderFailed,
    StoreUnavailable,
    UnsupportedType,
)
from app.rendering.frames import Frame, FrameError
from app.rendering.results import Drawing, Inspection

_FAULTS: dict[str, type[PagefleetError]] = {
    fault.code(): fault
    for fault in (
        DamagedImage,
        DamagedPdf,
        ImageTooLarge,
        NoPages,
        PageDamaged,
        PageTooLarge,
        PasswordRequired,
        PasswordWrong,
        PdfLocked,
        RenderFailed,
        StoreUnavailable,
        UnsupportedType,
    )
}
_MAX_DETAIL_CHARS = 500
MAX_TEXT_BYTES = 4 * 1024 * 1024
"""Of a page's text layer: a page that holds more is none."""
_BASE64 = (string.ascii_letters + string.digits + "+/=").encode()


def fault_named(code: str) -> PagefleetError:
    return _FAULTS[code]()


def fault_frame(fault: PagefleetError) -> Frame:
    """`fault.detail` is shown to clients: our own words, never a library's, which may name paths."""
    cause = "" if fault.__cause__ is None else f"{type(fault.__cause__).__name__}: {fault.__cause__}"
    return Frame({"fault": fault.code(), "detail": fault.detail, "cause": cause[:_MAX_DETAIL_CHARS]})


def inspection_frame(inspection: Inspection) -> Frame:
    return Frame({"pages": inspection.pages, "warnings": _warning_pairs(inspection.warnings)})


def drawing_frame(drawing: Drawing) -> Frame:
    header = {
        "width": drawing.width,
        "height": drawing.height,
        "size": drawing.size,
        "blank": drawing.blank,
        "warnings": _warning_pairs(drawing.warnings),
    }
    return Frame(header, drawing.image_base64)


def text_frame(text: str) -> Frame:
    """Raises `PageTooLarge`."""
    payload = clean_text(text).encode()
    if len(payload) > MAX_TEXT_BYTES:
        raise PageTooLarge(f"the page's text layer has more than {MAX_TEXT_BYTES} bytes")
    return Frame({}, payload)


def read_fault(frame: Frame) -> tuple[PagefleetError, str] | None:
    """The error that a frame carries and its cause in the library's words, for the log; None if it carries a result.

    This function and the next three raise `KeyError`, `TypeError` or `ValueError` for a frame of another form.
    """
    if "fault" not in frame.header:
        return None
    fault = _FAULTS[frame.header["fault"]]
    return fault(_text(frame.header["detail"])), _text(frame.header["cause"])


def read_inspection(frame: Frame) -> Inspection:
    return Inspection(_count(frame.header["pages"]), _warnings(frame.header["warnings"]))


def read_drawing(frame: Frame, spec: ImageSpec) -> Drawing:
    # The payload is spliced into the JSON of a request as it is: anything but base64 would be an injection.
    if not frame.payload or frame.payload.translate(None, _BASE64):
        raise FrameError("a payload that is no base64")
    width, height = frame.header["size"]
    return Drawing(
        image_base64=frame.payload,
        media_type=spec.media_type,
        width=_count(frame.header["width"]),
        height=_count(frame.header["height"]),
        size=(_length(width), _length(height)),
        blank=frame.header["blank"] is True,
        warnings=_warnings(frame.header["warnings"]),
    )


def read_text(frame: Frame) -> str:
    if len(frame.payload) > MAX_TEXT_BYTES:
        raise FrameError(f"a text of {len(frame.payload)} bytes")
    return clean_text(frame.payload.decode())


def _warning_pairs(warnings: tuple[Warn, ...]) -> list[tuple[str, str]]:
    return [(warning.code, warning.detail) for warning in warnings]


def _warnings(pairs: Any) -> tuple[Warn, ...]:
    return tuple(Warn(_text(code), _text(detail)) for code, detail in pairs)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FrameError(f"{type(value).__name__} instead of text")
    return clean_text(value)[:_MAX_DETAIL_CHARS]


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 1:
        raise FrameError("no positive whole number")
    return value


def _length(value: Any) -> float:
    if not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise FrameError("no positive number")
    return float(value)
