"""What both renderers of PDFs must do, and what only the first can."""

from pathlib import Path

import pymupdf
import pytest

from app.documents.records import ImageSpec
from app.errors import (
    DamagedPdf,
    NoPages,
    PageDamaged,
    PagefleetError,
    PageTooLarge,
    PasswordRequired,
    PasswordWrong,
    PdfLocked,
    StoreUnavailable,
    UnsupportedType,
)
from app.rendering.child import load_renderer
from app.rendering.renderer import Raster, Renderer
from tests.unit.rendering.pdfs import CATALOG, HELLO, HELVETICA, locked_pdf, one_page_pdf, raw_pdf, stream, text_pdf

MAX_PIXELS = 25_000_000
PICTURE = b"/XObject<</X1 5 0 R>>"


@pytest.fixture(params=["mupdf", "pdfium"])
def renderer(request: pytest.FixtureRequest) -> Renderer:
    return load_renderer(request.param)


@pytest.fixture
def mupdf() -> Renderer:
    return load_renderer("mupdf")


def _draw(renderer: Renderer, path: Path, page: int = 1, longest_side: int = 400) -> Raster:
    file = renderer.open_file(str(path), None)
    try:
        return file.draw(page, ImageSpec(longest_side), MAX_PIXELS)
    finally:
        file.close()


def _fault(renderer: Renderer, path: Path, password: str | None = None) -> type[PagefleetError] | None:
    """What inspection raises."""
    try:
        file = renderer.open_file(str(path), password)
        try:
            file.inspect()
        finally:
            file.close()
    except PagefleetError as error:
        return type(error)
    return None


def test_a_page_is_drawn_on_white(renderer: Renderer, tmp_path: Path) -> None:
    raster = _draw(renderer, text_pdf(tmp_path / "a.pdf"), longest_side=842)
    assert (raster.image.mode, raster.image.size, raster.size) == ("RGB", (595, 842), (595.0, 842.0))
    assert raster.image.getpixel((590, 840)) == (255, 255, 255)
    assert not raster.is_plain() and raster.warnings == ()


def test_an_image_outlives_its_page(renderer: Renderer, tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf", pages=2)
    first = _draw(renderer, path, 1)
    before = first.image.tobytes()
    _draw(renderer, path, 2)
    assert first.image.tobytes() == before


@pytest.mark.parametrize(
    ("entries", "size", "pixels"),
    [
        pytest.param(b"/Rotate 90", (200.0, 300.0), (267, 400), id="rotated"),
        pytest.param(b"/CropBox[50 50 150 100]", (100.0, 50.0), (400, 200), id="cropped"),
    ],
)
def test_size_is_the_page_as_shown(
    renderer: Renderer, tmp_path: Path, entries: bytes, size: tuple[float, float], pixels: tuple[int, int]
) -> None:
    raster = _draw(renderer, one_page_pdf(tmp_path / "a.pdf", stream(HELLO), HELVETICA, entries))
    assert (raster.size, raster.image.size) == (size, pixels)


def test_rounding_adds_no_pixel(renderer: Renderer, tmp_path: Path) -> None:
    assert 352 * (400 / 352) > 400  # in floating point
    assert _draw(renderer, text_pdf(tmp_path / "a.pdf", size=(352, 352))).image.size == (400, 400)


def test_form_values_and_annotations_are_drawn(renderer: Renderer, tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=300, height=200)
    widget = pymupdf.Widget()
    widget.field_name, widget.field_type, widget.field_value = "name", pymupdf.PDF_WIDGET_TYPE_TEXT, "FILLED"
    widget.rect = pymupdf.Rect(10, 10, 140, 60)
    page.add_widget(widget)
    page.add_freetext_annot(pymupdf.Rect(10, 120, 140, 180), "NOTE", fontsize=30)
    document.save(tmp_path / "a.pdf")
    image = _draw(renderer, tmp_path / "a.pdf", longest_side=300).image
    for box in ((10, 10, 140, 60), (10, 120, 140, 180)):
        assert min(image.crop(box).tobytes()) < 128, f"nothing drawn in {box}"


def _text(renderer: Renderer, path: Path, page: int = 1) -> str:
    file = renderer.open_file(str(path), None)
    try:
        return file.text(page)
    finally:
        file.close()


def test_the_text_layer_has_what_is_printed_and_what_is_hidden(renderer: Renderer, tmp_path: Path) -> None:
    hidden = b"BT 3 Tr /F1 20 Tf 50 40 Td (Hidden) Tj ET"
    path = one_page_pdf(tmp_path / "a.pdf", stream(HELLO + b" " + hidden))
    assert _text(renderer, path).split() == ["Hello", "Hidden"]
    assert _text(renderer, text_pdf(tmp_path / "b.pdf", pages=2), 2) == "page 2"


def test_a_scan_has_no_text_layer(renderer: Renderer, tmp_path: Path) -> None:
    picture = stream(
        b"\x80" * 81, b"/Type/XObject/Subtype/Image/Width 9/Height 9/ColorSpace/DeviceGray/BitsPerComponent 8"
    )
    path = one_page_pdf(tmp_path / "a.pdf", stream(b"300 0 0 200 0 0 cm /X1 Do"), PICTURE, b"", picture)
    assert _draw(renderer, path).image.getextrema() != ((255, 255),) * 3
    assert _text(renderer, path) == ""


def test_the_text_of_a_page_that_is_not_there_is_damaged(renderer: Renderer, tmp_path: Path) -> None:
    with pytest.raises(PageDamaged):
        _text(renderer, text_pdf(tmp_path / "a.pdf"), page=2)


def test_paragraphs_are_parted_by_empty_lines(mupdf: Renderer, tmp_path: Path) -> None:
    content = b"BT /F1 12 Tf 14 TL 20 180 Td (One) Tj T* (two) Tj 0 -80 Td (three) Tj ET"
    assert _text(mupdf, one_page_pdf(tmp_path / "a.pdf", stream(content))) == "One\ntwo\n\nthree"


def test_passwords(renderer: Renderer, tmp_path: Path) -> None:
    path = locked_pdf(tmp_path / "a.pdf", "sesame")
    assert _fault(renderer, path) is PasswordRequired
    assert _fault(renderer, path, "wrong") is PasswordWrong
    assert _fault(renderer, path, "sesame") is None
    assert _fault(renderer, path, "owner") is None


def test_a_file_with_an_owner_password_only_is_open_to_all(renderer: Renderer, tmp_path: Path) -> None:
    assert _fault(renderer, locked_pdf(tmp_path / "a.pdf", "")) is None


def test_encryption_that_no_password_opens(renderer: Renderer, tmp_path: Path) -> None:
    handler = b"<</Filter/Adobe.PubSec/V 4/SubFilter/adbe.pkcs7.s4>>"
    path = raw_pdf(
        tmp_path / "a.pdf",
        CATALOG,
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>",
        handler,
        trailer=b"/Encrypt 4 0 R/ID[(a)(b)]",
    )
    assert _fault(renderer, path) is PdfLocked


def test_rubbish_is_a_damaged_pdf(renderer: Renderer, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 8)
    assert _fault(renderer, path) is DamagedPdf


def test_a_file_that_is_gone_is_the_stores_fault(renderer: Renderer, tmp_path: Path) -> None:
    assert _fault(renderer, tmp_path / "a.pdf") is StoreUnavailable


def test_a_page_that_is_not_there_is_damaged(renderer: Renderer, tmp_path: Path) -> None:
    with pytest.raises(PageDamaged):
        _draw(renderer, text_pdf(tmp_path / "a.pdf"), page=2)


def test_a_null_among_the_pages_costs_that_page_only(renderer: Renderer, tmp_path: Path) -> None:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 5 0 R/Resources<<%s>>>>" % HELVETICA
    pages = b"<</Type/Pages/Kids[3 0 R null 4 0 R]/Count 3>>"
    path = raw_pdf(tmp_path / "a.pdf", CATALOG, pages, page, page, stream(HELLO))
    assert _fault(renderer, path) is None
    with pytest.raises(PageDamaged):
        _draw(renderer, path, page=2)
    assert not _draw(renderer, path, page=3).is_plain()


def test_what_one_page_left_unsaid_is_not_blamed_on_a_blank_one(mupdf: Renderer, tmp_path: Path) -> None:
    """MuPDF reports repeated messages late: those of the broken page tree come with the next page."""
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>"
    pages = b"<</Type/Pages/Kids[3 0 R null null 4 0 R]/Count 4>>"
    file = mupdf.open_file(str(raw_pdf(tmp_path / "a.pdf", CATALOG, pages, page, page)), None)
    for number in (2, 3):
        with pytest.raises(PageDamaged):
            file.draw(number, ImageSpec(400), MAX_PIXELS)
    assert file.draw(4, ImageSpec(400), MAX_PIXELS).is_plain()


def test_a_strip_too_thin_to_read_is_too_large(renderer: Renderer, tmp_path: Path) -> None:
    with pytest.raises(PageTooLarge):
        _draw(renderer, text_pdf(tmp_path / "a.pdf", size=(14_000, 3)))


def test_no_pages(mupdf: Renderer, tmp_path: Path) -> None:
    assert _fault(mupdf, raw_pdf(tmp_path / "a.pdf", CATALOG, b"<</Type/Pages/Kids[]/Count 0>>")) is NoPages


def test_html_named_pdf_is_no_pdf(mupdf: Renderer, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_text("<!DOCTYPE html><html><body><p>Not found</p></body></html>")
    assert _fault(mupdf, path) is UnsupportedType


def test_a_repaired_file_and_a_dynamic_form_are_told(mupdf: Renderer, tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "a.pdf", pages=3)
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"xref\n0")])
    inspection = mupdf.open_file(str(path), None).inspect()
    assert (inspection.pages, [warning.code for warning in inspection.warnings]) == (3, ["file_repaired"])

    form = raw_pdf(
        tmp_path / "b.pdf",
        b"<</Type/Catalog/Pages 2 0 R/NeedsRendering true/AcroForm<</Fields[]/XFA 4 0 R>>>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>",
        stream(b"<xdp/>"),
    )
    assert [warning.code for warning in mupdf.open_file(str(form), None).inspect().warnings] == ["xfa_form"]


@pytest.mark.parametrize(
    ("content", "resources"),
    [
        pytest.param(stream(b"\x00\x01garbage", b"/Filter/FlateDecode"), HELVETICA, id="bad Flate data"),
        pytest.param(b"null", HELVETICA, id="missing content"),
        pytest.param(stream(b"/X1 Do"), HELVETICA, id="missing picture"),
    ],
)
def test_a_page_that_damage_left_white_is_not_blank(
    mupdf: Renderer, tmp_path: Path, content: bytes, resources: bytes
) -> None:
    with pytest.raises(PageDamaged):
        _draw(mupdf, one_page_pdf(tmp_path / "a.pdf", content, resources))


def test_a_blank_page_is_not_damaged(mupdf: Renderer, tmp_path: Path) -> None:
    raster = _draw(mupdf, one_page_pdf(tmp_path / "a.pdf", stream(b"")))
    assert raster.is_plain() and raster.warnings == ()


def test_a_page_with_a_broken_picture_is_incomplete(mupdf: Renderer, tmp_path: Path) -> None:
    picture = stream(b"garbage", b"/Type/XObject/Subtype/Image/Width 9/Height 9/Filter/JPXDecode")
    path = one_page_pdf(tmp_path / "a.pdf", stream(HELLO + b" /X1 Do"), HELVETICA + PICTURE, b"", picture)
    assert [warning.code for warning in _draw(mupdf, path).warnings] == ["page_incomplete"]
