import sys
from typing import Any

import faster_paddle
import pytest

from app.errors import StartError
from app.replicas.cpu.engine import Line
from app.replicas.cpu.paddle import PaddleEngine
from tests.pages import BODY_SIZE, draw_page, encode


@pytest.fixture(scope="module")
def engine() -> PaddleEngine:
    return PaddleEngine()


def read(engine: PaddleEngine, model: str, media_format: str = "PNG") -> Line:
    [line] = engine.read(encode(draw_page([("Hello world", BODY_SIZE)], size=(400, 200)), media_format), model)
    return line


@pytest.mark.parametrize(
    ("model", "media_format"), [("PP-OCRv6 tiny", "PNG"), ("PP-OCRv6 tiny", "BMP"), ("PP-OCRv6 small", "JPEG")]
)
def test_lines_have_text_box_and_confidence(engine: PaddleEngine, model: str, media_format: str) -> None:
    line = read(engine, model, media_format)
    assert line.text == "Hello world"
    assert 70 < line.box.left < 90 < line.box.right < 300
    assert 50 < line.box.top < line.box.bottom < 110
    assert 0.9 < line.confidence <= 1


def test_models_come_from_the_fastest_to_the_most_accurate(engine: PaddleEngine) -> None:
    assert engine.models == ("PP-OCRv6 tiny", "PP-OCRv6 small")


def test_one_model_is_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[str] = []
    most = []

    class Counted:
        def __init__(self, model_size: str, threads: int) -> None:
            self.size = model_size
            alive.append(model_size)
            most.append(len(alive))

        def __del__(self) -> None:
            alive.remove(self.size)

        def ocr(self, image: bytes) -> dict[str, Any]:
            return {"bounds": {}}

    monkeypatch.setattr(faster_paddle, "OcrEngine", Counted)
    engine = PaddleEngine()
    for model in (engine.models[0], engine.models[1], engine.models[1], engine.models[0]):
        engine.read(b"", model)
    assert most == [1, 1, 1]
    assert alive == ["tiny"]


def test_a_missing_package_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_paddle", None)
    with pytest.raises(StartError, match=r"pagefleet\[cpu\]"):
        PaddleEngine()
