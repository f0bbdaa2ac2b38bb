import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from app.rendering.child import Child
from app.rendering.frames import Frame, read_frame
from tests.processes import open_descriptors
from tests.unit.rendering.pdfs import HELVETICA, one_page_pdf, stream, text_pdf

MEMORY_BYTES = 2**31


@pytest.fixture(autouse=True)
def cpu_limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The limits that jobs set, in seconds; in force they would bind this process."""
    limits: list[float] = []
    monkeypatch.setattr("app.rendering.child.renew_cpu_limit", limits.append)
    return limits


def _job(path: Path, **other: Any) -> dict[str, Any]:
    job = {"job": "inspect", "renderer": "mupdf", "path": str(path), "password": None, "cpu_seconds": 20}
    return job | {"failed": "damaged_pdf"} | other


def _drawing(path: Path, **other: Any) -> dict[str, Any]:
    image = {"longest_side_pixels": 200, "media_type": "image/png"}
    drawing = {"job": "draw", "page": 1, "image": image, "max_pixels": 1_000_000, "blank_is_damage": False}
    return _job(path, **(drawing | {"failed": "render_failed"} | other))


def test_answers_leave_on_the_real_standard_output_only(tmp_path: Path) -> None:
    """A library that prints does not get between the frames, and the end of the input ends the process."""
    script = (
        "import os, sys, app.rendering.child as child; sys.argv = ['', '%d']; load = child.load_renderer\n"
        "def noisy(name): os.write(1, b'noise'); print('noise', flush=True); return load(name)\n"
        "child.load_renderer = noisy; child.main()"
    )
    job = Frame(_job(text_pdf(tmp_path / "a.pdf", pages=3)))
    child = subprocess.run(
        [sys.executable, "-c", script % MEMORY_BYTES],
        input=b"".join(job.parts()),
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert child.stdout == b"".join(
        part for frame in (Frame({"ready": True}), Frame({"pages": 3, "warnings": []})) for part in frame.parts()
    )
    assert b"noise" in child.stderr


def test_a_process_is_bounded_by_the_kernel() -> None:
    script = (
        "import resource, sys; from app.rendering.limits import *; limit_process(%d); renew_cpu_limit(5)\n"
        "kinds = resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_CORE\n"
        "print(*(resource.getrlimit(kind)[0] for kind in kinds))"
    )
    output = subprocess.run(
        [sys.executable, "-c", script % MEMORY_BYTES], capture_output=True, timeout=30, check=True, text=True
    ).stdout
    memory, cpu, core = map(int, output.split())
    assert memory == MEMORY_BYTES or sys.platform != "linux"
    assert 6 <= cpu <= 8
    assert core == 0


def test_each_job_renews_the_cpu_limit(tmp_path: Path, cpu_limits: list[float]) -> None:
    child, path = Child(), text_pdf(tmp_path / "a.pdf")
    child.answer(_job(path, cpu_seconds=5))
    child.answer(_drawing(path, cpu_seconds=20))
    assert cpu_limits == [5, 20]


def test_the_file_stays_open_for_its_other_pages(tmp_path: Path) -> None:
    path, other = text_pdf(tmp_path / "a.pdf", pages=2), text_pdf(tmp_path / "b.pdf")
    child = Child()
    assert child.answer(_drawing(path)).payload
    path.unlink()
    assert child.answer(_drawing(path, page=2)).payload
    assert child.answer(_drawing(other)).payload
    assert child.answer(_drawing(path)).header["fault"] == "store_unavailable"


def test_one_file_is_open_at_a_time_and_none_after_a_fault_or_an_inspection(tmp_path: Path) -> None:
    paths = [text_pdf(tmp_path / name) for name in ("a.pdf", "b.pdf", "c.pdf")]
    closed, child = open_descriptors(), Child()
    for path in paths:
        assert child.answer(_drawing(path)).payload
        assert open_descriptors() == closed + 1
    assert child.answer(_drawing(paths[-1], page=2)).header["fault"] == "page_damaged"
    assert open_descriptors() == closed
    assert child.answer(_job(paths[0])).header["pages"] == 1
    assert open_descriptors() == closed


def test_a_page_is_blank_when_nothing_stands_on_it(tmp_path: Path) -> None:
    blank = one_page_pdf(tmp_path / "a.pdf", stream(b""))
    assert Child().answer(_drawing(blank)).header["blank"] is True
    assert Child().answer(_drawing(text_pdf(tmp_path / "b.pdf"))).header["blank"] is False


def test_a_page_with_parts_missing_is_never_blank(tmp_path: Path) -> None:
    """What is missing may have been all that stood on it; the dot shows that the page was drawn."""
    picture = stream(b"garbage", b"/Type/XObject/Subtype/Image/Width 9/Height 9/Filter/JPXDecode")
    content = stream(b"100 100 1 1 re f /X1 Do")
    path = one_page_pdf(tmp_path / "a.pdf", content, HELVETICA + b"/XObject<</X1 5 0 R>>", b"", picture)
    header = Child().answer(_drawing(path)).header
    assert (header["blank"], header["warnings"][0][0]) == (False, "page_incomplete")


def test_the_text_layer_is_an_answer_without_an_image(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf", pages=2)
    assert Child().answer(_job(path, job="text", page=2)) == Frame({}, b"page 2")
    assert Child().answer(_job(path, job="text", page=3)).header["fault"] == "page_damaged"


def test_a_blank_drawing_is_no_answer_to_damage(tmp_path: Path) -> None:
    path = one_page_pdf(tmp_path / "a.pdf", stream(b"\x00\x01", b"/Filter/FlateDecode"), HELVETICA)
    assert Child().answer(_drawing(path, renderer="pdfium")).payload
    second = _drawing(path, renderer="pdfium", blank_is_damage=True)
    assert Child().answer(second).header["fault"] == "page_damaged"


@pytest.mark.parametrize(("job", "code"), [(_job, "damaged_pdf"), (_drawing, "render_failed")])
def test_an_unforeseen_error_is_an_answer_without_the_librarys_words(tmp_path: Path, job: Any, code: str) -> None:
    answer = Child().answer(job(tmp_path / "secret.pdf", renderer="no_such_renderer"))
    assert answer.header["fault"] == code
    assert "no_such_renderer" in answer.header["cause"] and "no_such_renderer" not in answer.header["detail"]


@pytest.mark.skipif(sys.platform != "linux", reason="the address space can't be bounded")
def test_an_exhausted_address_space_is_a_page_too_large(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf", size=(4000, 4000))
    job = _drawing(path, image={"longest_side_pixels": 16_000, "media_type": "image/png"})
    job["max_pixels"] = 400_000_000
    command = [sys.executable, "-m", "app.rendering.child", str(300 * 2**20)]
    job_bytes = b"".join(Frame(job).parts())
    output = BytesIO(subprocess.run(command, input=job_bytes, capture_output=True, timeout=30, check=True).stdout)
    assert read_frame(output) == Frame({"ready": True})
    answer = read_frame(output)
    assert answer is not None and answer.header["fault"] == "page_too_large"
