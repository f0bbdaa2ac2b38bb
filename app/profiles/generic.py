"""Any vision model that speaks chat completions: prompt, image size and token limit come from the settings."""

from collections.abc import Mapping
from typing import Any

from app.documents.models import CPU_MODEL
from app.documents.records import ImageSpec
from app.profiles.answer import complete_text
from app.profiles.profile import Reading, chat_request


class GenericProfile:
    name = "generic"

    def __init__(self, prompt: str, longest_side_pixels: int, max_tokens: int) -> None:
        self.image = ImageSpec(longest_side_pixels)
        self._prompt = prompt
        self._max_tokens = max_tokens

    def serves(self, model: str) -> bool:
        return model != CPU_MODEL

    def request(self, model: str) -> tuple[bytes, bytes]:
        return chat_request(model, self._prompt, self.image.media_type, max_tokens=self._max_tokens, temperature=0)

    def judge(self, text: str, finish_reason: str, extra: Mapping[str, Any]) -> Reading:
        return Reading(complete_text(text, finish_reason))
