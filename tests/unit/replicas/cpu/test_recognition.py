import io

import pytest
from PIL import Image, ImageDraw

from app.replicas.cpu.engine import Box, Line
from app.replicas.cpu.paddle import PaddleEngine
from app.replicas.cpu.recognition import Recognition, Recognizer
from tests.pages import BODY_SIZE, draw_page, encode
from tests.unit.replicas.cpu.engines import ScriptedEngine
from tests.unit.replicas.cpu.lines import line

WIDTH, HEIGHT = 600, 400


def draw_stripes() -> Image.Image:
    """Dark ink wherever the engine is made to see a line."""
    page = Image.new("L", (WIDTH, HEIGHT), 255)
    for top in range(0, HEIGHT, 10):
        ImageDraw.Draw(page).rectangle((0, top, WIDTH, top + 4), fill=0)
    return page


PAGE = encode(draw_stripes(), "PNG")


def print_(confidence: float, text: str = "Every page is committed") -> list[Line]:
    return [line(text, 50, top, confidence=confidence) for top in (50, 90)]


def on_its_side(confidence: float, text: str = "Every page is committed") -> list[Line]:
    return [Line(text, Box(left, 50, left + 30, 350), confidence) for left in (50, 90)]


def recognize(engine: ScriptedEngine, image: bytes = PAGE) -> Recognition:
    readings: list[None] = []
    found = Recognizer(engine, lambda: readings.append(None)).recognize(image)
    assert len(readings) == len(engine.asked)
    return found


def sizes(engine: ScriptedEngine) -> list[tuple[int, int]]:
    return [Image.open(io.BytesIO(image)).size for image in engine.images]


def test_clean_upright_print_is_read_once_as_it_came() -> None:
    engine = ScriptedEngine(print_(0.99))
    found = recognize(engine)
    assert (found.rotation, found.skew_degrees, found.model, found.left_out) == (0, 0, "fast", 0)
    assert engine.images == [PAGE]


def test_a_page_without_lines_is_read_once() -> None:
    found = recognize(ScriptedEngine([]))
    assert (found.lines, found.confidence) == ([], 1)


def test_illegible_print_is_tried_upside_down() -> None:
    engine = ScriptedEngine(print_(0.6), print_(0.98))
    assert recognize(engine).rotation == 180
    assert sizes(engine) == [(WIDTH, HEIGHT)] * 2


@pytest.mark.parametrize(("legible", "rotation"), [(False, 90), (True, 270)])
def test_print_on_its_side_is_turned_the_likelier_way_first(legible: bool, rotation: int) -> None:
    engine = ScriptedEngine(on_its_side(0.97 if legible else 0.5), print_(0.98))
    assert recognize(engine).rotation == rotation
    assert sizes(engine) == [(WIDTH, HEIGHT), (HEIGHT, WIDTH)]


def test_print_on_its_side_is_turned_the_other_way_if_that_was_wrong() -> None:
    assert recognize(ScriptedEngine(on_its_side(0.5), print_(0.6), print_(0.98))).rotation == 270


def test_turned_images_are_turned_clockwise() -> None:
    page = draw_stripes()
    ImageDraw.Draw(page).rectangle((0, 0, 50, 50), fill=99)
    engine = ScriptedEngine(on_its_side(0.5), print_(0.98))
    recognize(engine, encode(page, "PNG"))
    turned = Image.open(io.BytesIO(engine.images[1])).convert("L")
    assert turned.getpixel((HEIGHT - 10, 10)) == 99


def test_a_page_that_reads_badly_either_way_stays_as_it_is() -> None:
    found = recognize(ScriptedEngine(print_(0.7), print_(0.6)))
    assert (found.rotation, found.is_legible, found.model) == (0, False, "fast")


def test_a_tall_page_number_does_not_lay_a_page_on_its_side() -> None:
    engine = ScriptedEngine([Line("7", Box(50, 50, 60, 80), 0.99), Line("II", Box(90, 50, 100, 80), 0.99)])
    assert recognize(engine).rotation == 0


@pytest.mark.parametrize(("better", "model"), [(0.98, "better"), (0.85, "fast")])
def test_an_unsure_reading_is_repeated_with_the_better_model_and_the_surer_one_kept(better: float, model: str) -> None:
    engine = ScriptedEngine(print_(0.9), print_(better))
    assert recognize(engine).model == model
    assert engine.asked == ["fast", "better"]


def test_an_engine_with_one_model_reads_once() -> None:
    engine = ScriptedEngine(print_(0.9))
    engine.models = ("fast",)
    assert recognize(engine).model == "fast"


def test_noise_is_left_out_and_counted() -> None:
    found = recognize(ScriptedEngine([*print_(0.99), line("~", 50, 300, confidence=0.3)]))
    assert [found.text for found in found.lines] == ["Every page is committed"] * 2
    assert found.left_out == 1


def test_show_through_stays_out_when_the_better_model_sees_it_too() -> None:
    page = Image.new("L", (WIDTH, HEIGHT), 255)
    for top in (50, 90, 300):
        ImageDraw.Draw(page).rectangle((60, top + 5, 200, top + 20), fill=0 if top < 300 else 230)
    behind = line("enlt to ebia", 50, 300, confidence=0.85)
    mirrored = [line("side of the", WIDTH - 250, 300, confidence=0.97)]
    engine = ScriptedEngine([*print_(0.95), behind], mirrored, [*print_(0.99), behind])
    found = recognize(engine, encode(page, "PNG"))
    assert [found.text for found in found.lines] == ["Every page is committed"] * 2
    assert (found.left_out, found.model) == (1, "better")


def test_the_real_engine_reads_a_page_that_lies_askew_on_its_side() -> None:
    page = draw_page([("Every page is committed as it is finished", BODY_SIZE)] * 3, size=(800, 300))
    askew = page.rotate(1.5, Image.Resampling.BICUBIC, fillcolor="white").rotate(90, expand=True)
    found = Recognizer(PaddleEngine(), lambda: None).recognize(encode(askew))
    assert [line.text for line in found.lines] == ["Every page is committed as it is finished"] * 3
    assert found.rotation == 90
    assert found.skew_degrees == pytest.approx(1.5, abs=0.11)
