"""The embedded OCR server (`pagefleet replicas up --engine cpu`): it needs no prompt and answers with Markdown."""

from collections.abc import Mapping
from typing import Any

from app.documents.models import CPU_MODEL
from app.documents.records import ImageSpec, Warn
from app.documents.text import clean_text
from app.profiles.answer import complete_text
from app.profiles.profile import Reading, chat_request

A4_AT_200_DPI_PIXELS = 2339
"""Longest side: line crops come from the source image, and 200 DPI read best at a cost that hardly grows with DPI."""


class CpuProfile:
    name = "cpu"
    image = ImageSpec(A4_AT_200_DPI_PIXELS)

    def serves(self, model: str) -> bool:
        return model == CPU_MODEL

    def request(self, model: str) -> tuple[bytes, bytes]:
        return chat_request(model, "", self.image.media_type)

    def judge(self, text: str, finish_reason: str, extra: Mapping[str, Any]) -> Reading:
        return Reading(complete_text(text, finish_reason), _warnings(extra), _confidence(extra))


def _confidence(extra: Mapping[str, Any]) -> float | None:
    value = extra.get("confidence")
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def _warnings(extra: Mapping[str, Any]) -> tuple[Warn, ...]:
    given = extra.get("warnings")
    return tuple(
        Warn(clean_text(str(warning["code"])), clean_text(str(warning["detail"])))
        for warning in (given if isinstance(given, list) else [])
        if isinstance(warning, dict) and {"code", "detail"} <= warning.keys()
    )
