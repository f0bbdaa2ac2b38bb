import sys

import pytest

from app.errors import StartError
from app.replicas.cpu.paddle import PaddleEngine
from tests.pages import BODY_SIZE, draw_page, encode


def test_lines_have_text_box_and_confidence() -> None:
    [line] = PaddleEngine().read(encode(draw_page([("Hello world", BODY_SIZE)], size=(400, 200)), "PNG"))
    assert line.text == "Hello world"
    assert 70 < line.box.left < 90 < line.box.right < 300
    assert 50 < line.box.top < line.box.bottom < 110
    assert 0.9 < line.confidence <= 1


def test_a_missing_package_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_paddle", None)
    with pytest.raises(StartError, match=r"pagefleet\[cpu\]"):
        PaddleEngine()
