"""The embedded OCR server (`pagefleet replicas up --engine cpu`): it needs no prompt and answers with Markdown."""

from app.documents.models import CPU_MODEL
from app.documents.records import ImageSpec
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

    def judge(self, text: str, finish_reason: str) -> Reading:
        return Reading(complete_text(text, finish_reason))
