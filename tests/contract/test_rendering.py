import asyncio
import base64
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from app.documents.media_types import PDF
from app.documents.records import ImageSpec
from app.errors import (
    Busy,
    DamagedImage,
    Draining,
    InspectTimeout,
    NoPages,
    PageDamaged,
    PagefleetError,
    PasswordRequired,
    PasswordWrong,
    RenderTimeout,
    StoreUnavailable,
    UnsupportedType,
)
from app.rendering import Drawing, Rendering
from app.settings import Settings
from tests.processes import is_alive, open_descriptors
from tests.unit.rendering.pdfs import (
    CATALOG,
    HELLO,
    HELVETICA,
    bomb_pdf,
    locked_pdf,
    one_page_pdf,
    raw_pdf,
    stream,
    text_pdf,
)

SPEC = ImageSpec(400)
DEADLINE_SECONDS = 30


@pytest.fixture(scope="module")
async def rendering() -> AsyncIterator[Rendering]:
    shared = Rendering(Settings(render_workers=1))
    yield shared
    await shared.close()


def _image(drawing: Drawing) -> Image.Image:
    return Image.open(BytesIO(base64.b64decode(drawing.image_base64, validate=True)))


def _only_for_the_second(path: Path) -> Path:
    """A PDF with a page count that MuPDF does not believe."""
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<<%s>>>>" % HELVETICA
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 2000000000>>"
    return raw_pdf(path, CATALOG, pages, page, stream(HELLO))


async def _frozen_worker(rendering: Rendering, path: Path) -> int:
    """Draw a page, then stop the worker that did it: the last, of one for each pool."""
    await rendering.draw(path, PDF, 1, SPEC)
    pid = rendering.worker_pids()[-1]
    os.kill(pid, signal.SIGSTOP)
    return pid


async def test_a_file_is_inspected_and_its_pages_are_drawn(rendering: Rendering, tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf", pages=3)
    assert (await rendering.inspect(path, PDF)).pages == 3
    drawing = await rendering.draw(path, PDF, 2, ImageSpec(1288))
    image = _image(drawing)
    assert (image.format, image.mode, image.size) == ("JPEG", "L", (drawing.width, drawing.height))
    assert (drawing.height, drawing.size, drawing.media_type) == (1288, (595.0, 842.0), "image/jpeg")
    assert 0 < drawing.seconds < DEADLINE_SECONDS


async def test_pages_drawn_at_once_are_the_pages_asked_for(rendering: Rendering, tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf", pages=5)
    one_by_one = [(await rendering.draw(path, PDF, page, SPEC)).image_base64 for page in range(1, 6)]
    at_once = await asyncio.gather(*(rendering.draw(path, PDF, page, SPEC) for page in range(1, 6)))
    assert [drawing.image_base64 for drawing in at_once] == one_by_one
    assert len(set(one_by_one)) == 5


async def test_colour_stays_and_png_is_made_where_asked(rendering: Rendering, tmp_path: Path) -> None:
    path = one_page_pdf(tmp_path / "a.pdf", stream(b"1 0 0 rg 10 10 2 2 re f"))
    coloured = _image(await rendering.draw(path, PDF, 1, ImageSpec(400, "image/png")))
    plain = _image(await rendering.draw(text_pdf(tmp_path / "b.pdf"), PDF, 1, ImageSpec(400, "image/png")))
    assert (coloured.format, coloured.mode, plain.mode) == ("PNG", "RGB", "L")


async def test_an_image_is_inspected_and_drawn(rendering: Rendering, tmp_path: Path) -> None:
    path = tmp_path / "document"
    pages = [Image.new("1", (620, 877), "white") for _ in range(2)]
    ImageDraw.Draw(pages[1]).rectangle((100, 100, 300, 120), fill="black")
    pages[0].save(path, "TIFF", compression="group4", save_all=True, append_images=pages[1:])
    assert (await rendering.inspect(path, "image/tiff")).pages == 2
    blank, drawing = [await rendering.draw(path, "image/tiff", page, SPEC) for page in (1, 2)]
    assert (blank.blank, drawing.blank) == (True, False)
    assert (_image(drawing).format, drawing.height, drawing.size) == ("JPEG", 400, (465.0, 657.75))


async def test_a_damaged_image_is_refused_and_its_process_lives_on(rendering: Rendering, tmp_path: Path) -> None:
    pids = rendering.worker_pids()
    (tmp_path / "document").write_bytes(b"\xff\xd8\xff\xe0 no photo")
    with pytest.raises(DamagedImage):
        await rendering.inspect(tmp_path / "document", "image/jpeg")
    with pytest.raises(DamagedImage):
        await rendering.draw(tmp_path / "document", "image/jpeg", 1, SPEC)
    assert pids == [] or rendering.worker_pids() == pids


async def test_the_text_layer_is_read_by_the_second_renderer_where_the_first_can_not(
    rendering: Rendering, tmp_path: Path
) -> None:
    assert await rendering.text(text_pdf(tmp_path / "a.pdf", pages=2), 2) == "page 2"
    assert await rendering.text(_only_for_the_second(tmp_path / "b.pdf"), 1) == "Hello"
    with pytest.raises(PasswordRequired):
        await rendering.text(locked_pdf(tmp_path / "c.pdf", "sesame"), 1)
    assert await rendering.text(tmp_path / "c.pdf", 1, "sesame") == "page 1"


async def test_a_locked_file_opens_with_its_password(rendering: Rendering, tmp_path: Path) -> None:
    path = locked_pdf(tmp_path / "a.pdf", "sesame")
    with pytest.raises(PasswordRequired):
        await rendering.inspect(path, PDF)
    with pytest.raises(PasswordWrong):
        await rendering.inspect(path, PDF, "wrong")
    assert (await rendering.inspect(path, PDF, "sesame")).pages == 1
    assert (await rendering.draw(path, PDF, 1, SPEC, "sesame")).width == 283


async def test_what_neither_renderer_reads_is_refused_with_the_firsts_reason(
    rendering: Rendering, tmp_path: Path
) -> None:
    html = tmp_path / "a.pdf"
    html.write_text("<!DOCTYPE html><html><body><p>Not found</p></body></html>")
    empty = raw_pdf(tmp_path / "b.pdf", CATALOG, b"<</Type/Pages/Kids[]/Count 0>>")
    reasons: list[tuple[Path, type[PagefleetError]]] = [
        (html, UnsupportedType),
        (empty, NoPages),
        (tmp_path / "none.pdf", StoreUnavailable),
    ]
    for path, error in reasons:
        with pytest.raises(error) as raised:
            await rendering.inspect(path, PDF)
        assert str(tmp_path) not in str(raised.value.problem())


async def test_a_damaged_page_fails_alone(rendering: Rendering, tmp_path: Path) -> None:
    path = one_page_pdf(tmp_path / "a.pdf", stream(b"\x00\x01", b"/Filter/FlateDecode"))
    with pytest.raises(PageDamaged):
        await rendering.draw(path, PDF, 1, SPEC)
    assert await rendering.draw(text_pdf(tmp_path / "b.pdf"), PDF, 1, SPEC)


async def test_the_second_renderer_reads_what_the_first_can_not(rendering: Rendering, tmp_path: Path) -> None:
    path = _only_for_the_second(tmp_path / "a.pdf")
    assert (await rendering.inspect(path, PDF)).pages == 1
    assert _image(await rendering.draw(path, PDF, 1, SPEC)).getextrema() != (255, 255)


async def test_a_page_whose_worker_is_killed_is_drawn_all_the_same(rendering: Rendering, tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf")
    pid = await _frozen_worker(rendering, path)
    drawing = asyncio.create_task(rendering.draw(path, PDF, 1, SPEC))
    await asyncio.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    assert (await drawing).height == 400


async def test_a_cancelled_drawing_does_not_answer_for_the_next(rendering: Rendering, tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf", pages=2)
    second = (await rendering.draw(path, PDF, 2, SPEC)).image_base64
    pid = await _frozen_worker(rendering, path)
    drawing = asyncio.create_task(rendering.draw(path, PDF, 1, SPEC))
    await asyncio.sleep(0.02)
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    assert (await rendering.draw(path, PDF, 2, SPEC)).image_base64 == second
    assert pid not in rendering.worker_pids()


async def test_a_page_that_never_ends_times_out_and_its_neighbours_do_not_notice(tmp_path: Path) -> None:
    bomb, path = bomb_pdf(tmp_path / "bomb.pdf"), text_pdf(tmp_path / "a.pdf", pages=5)
    rendering = Rendering(Settings(render_workers=2, render_seconds=0.4))
    try:
        endless = asyncio.create_task(rendering.draw(bomb, PDF, 1, SPEC))
        for page in range(1, 6):
            assert await rendering.draw(path, PDF, page, SPEC)
        with pytest.raises(RenderTimeout):
            await endless
        assert await rendering.draw(path, PDF, 1, SPEC)
    finally:
        await rendering.close()


async def test_inspection_has_its_time(tmp_path: Path) -> None:
    rendering = Rendering(Settings(render_workers=1, inspect_seconds=1e-6))
    try:
        with pytest.raises(InspectTimeout):
            await rendering.inspect(text_pdf(tmp_path / "a.pdf"), PDF)
    finally:
        await rendering.close()


async def test_an_upload_waits_for_a_worker_no_longer_than_it_should(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf")
    rendering = Rendering(Settings(render_workers=1, inspect_wait_seconds=0.05))
    try:
        await rendering.inspect(path, PDF)
        os.kill(rendering.worker_pids()[0], signal.SIGSTOP)
        first = asyncio.create_task(rendering.inspect(path, PDF))
        await asyncio.sleep(0)
        with pytest.raises(Busy) as busy:
            await rendering.inspect(path, PDF)
        assert busy.value.problem()["retry_after"] == 1
        first.cancel()
    finally:
        await rendering.close()


async def test_close_leaves_no_process_and_no_descriptor(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf")
    descriptors = open_descriptors()
    rendering = Rendering(Settings(render_workers=2))
    await asyncio.gather(rendering.inspect(path, PDF), *(rendering.draw(path, PDF, 1, SPEC) for _ in range(2)))
    pids = rendering.worker_pids()
    assert len(pids) == 3 and all(map(is_alive, pids))
    await rendering.close()
    assert not any(map(is_alive, pids)) and rendering.worker_pids() == []
    assert open_descriptors() == descriptors
    with pytest.raises(Draining):
        await rendering.draw(path, PDF, 1, SPEC)


GATEWAY = """
import asyncio, sys
from pathlib import Path
from app.documents.media_types import PDF
from app.documents.records import ImageSpec
from app.rendering import Rendering
from app.settings import Settings

async def main():
    rendering = Rendering(Settings(render_workers=1))
    await rendering.inspect(Path(sys.argv[1]), "application/pdf")
    await rendering.draw(Path(sys.argv[1]), "application/pdf", 1, ImageSpec(400))
    print(*rendering.worker_pids(), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_workers_end_with_a_gateway_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GATEWAY, str(text_pdf(tmp_path / "a.pdf"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        pids = [int(pid) for pid in gateway.stdout.readline().split()]
        assert len(pids) == 2
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)  # like one that spins in C, it would not notice the end of its input
        gateway.kill()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "a worker outlives its gateway"
        time.sleep(0.01)


def test_the_gateway_imports_no_renderer() -> None:
    script = "import sys, app.rendering, app.rendering.rendering; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=30)
    assert not {"pymupdf", "pypdfium2", "PIL"} & set(output.stdout.split())


def test_a_worker_imports_nothing_of_the_gateways() -> None:
    script = "import sys, app.rendering.child; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=30)
    assert not {"asyncio", "pydantic", "prometheus_client", "structlog"} & set(output.stdout.split())


def test_a_folder_named_app_in_the_working_directory_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('shadowed')")
    text_pdf(tmp_path / "a.pdf")
    script = (
        "import asyncio, os, sys; sys.path[0] = %r; from pathlib import Path; from app.settings import Settings\n"
        "from app.rendering import Rendering\n"
        "async def main():\n"
        "    rendering = Rendering(Settings(render_workers=1))\n"
        "    print((await rendering.inspect(Path('a.pdf'), 'application/pdf')).pages)\n"
        "    await rendering.close()\n"
        "asyncio.run(main())"
    )
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", script % root]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True, timeout=30)
    assert output.stdout == "1\n"
