"""Images as input: the renderer itself, on files that Pillow writes."""

from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any
from zlib import crc32

import pytest
from PIL import Image, ImageDraw, ImageOps, TiffImagePlugin

from app.documents.records import ImageSpec
from app.errors import DamagedImage, ImageTooLarge, PageDamaged, PageTooLarge, StoreUnavailable
from app.rendering import pillow
from app.rendering.pictures import DEFAULT_DPI
from app.rendering.pillow import open_file
from app.rendering.renderer import Raster
from app.rendering.results import Inspection

MAX_PIXELS = 25_000_000
ORIENTATION = 0x0112
_STORED: dict[int, Callable[[Image.Image], Image.Image]] = {
    1: lambda image: image,
    2: ImageOps.mirror,
    3: lambda image: image.rotate(180),
    4: ImageOps.flip,
    5: lambda image: image.transpose(Image.Transpose.TRANSPOSE),
    6: lambda image: image.transpose(Image.Transpose.ROTATE_90),
    7: lambda image: image.transpose(Image.Transpose.TRANSVERSE),
    8: lambda image: image.transpose(Image.Transpose.ROTATE_270),
}
"""What a camera of this EXIF orientation stores of an upright picture."""
INK, PAPER = 60, 200
"""Levels that tell whether a pixel is meant to be black or white, after scaling and JPEG."""


def _picture(mode: str = "RGB", size: tuple[int, int] = (120, 60)) -> Image.Image:
    """White, the upper left quarter black."""
    picture = Image.new("RGB", size, "white")
    ImageDraw.Draw(picture).rectangle((0, 0, size[0] // 2 - 1, size[1] // 2 - 1), fill="black")
    return picture.convert(mode)


def _draw(path: Path, page: int = 1, longest_side: int = 400) -> Raster:
    file = open_file(str(path), None)
    try:
        return file.draw(page, ImageSpec(longest_side), MAX_PIXELS)
    finally:
        file.close()


def _inspect(path: Path) -> Inspection:
    file = open_file(str(path), None)
    try:
        return file.inspect()
    finally:
        file.close()


def _corners(image: Image.Image) -> str:
    """Upper left, upper right, lower left, lower right: `#` where there is ink, `.` where there is paper."""
    grey = image.convert("L")
    x, y = image.width // 4, image.height // 4
    levels = [grey.getpixel(place) for place in ((x, y), (3 * x, y), (x, 3 * y), (3 * x, 3 * y))]
    return "".join("#" if level < INK else "." if level > PAPER else "?" for level in levels)  # type: ignore[operator]


def _codes(inspection: Inspection) -> list[str]:
    return [warning.code for warning in inspection.warnings]


def _chunk(name: bytes, data: bytes = b"") -> bytes:
    """A chunk of a PNG."""
    return pack("!I", len(data)) + name + data + pack("!I", crc32(name + data))


@pytest.mark.parametrize("name", ["PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP"])
def test_a_picture_is_a_page(tmp_path: Path, name: str) -> None:
    path = tmp_path / "document"
    _picture().save(path, name, dpi=(96, 96))
    assert _inspect(path) == Inspection(1)
    raster = _draw(path)
    assert (_corners(raster.image), raster.image.size, raster.warnings) == ("#...", (120, 60), ())
    assert raster.size == pytest.approx((90, 45), rel=0.001)


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("1", "PNG"),
        ("L", "PNG"),
        ("P", "PNG"),
        ("I;16", "PNG"),
        ("I;16", "TIFF"),
        ("CMYK", "JPEG"),
        ("CMYK", "TIFF"),
        ("YCbCr", "TIFF"),
        ("RGBA", "PNG"),
        ("LA", "PNG"),
        ("F", "TIFF"),
        ("I", "TIFF"),
    ],
)
def test_every_mode_comes_out_as_it_looks(tmp_path: Path, mode: str, name: str) -> None:
    path = tmp_path / "document"
    if mode == "I;16":
        picture = _picture("I").point(lambda level: level * 257).convert(mode)
    else:
        picture = _picture("RGB" if mode in ("CMYK", "YCbCr") else "L").convert(mode)
    picture.save(path, name)
    raster = _draw(path)
    assert _corners(raster.image) == "#..."
    assert raster.image.mode in ("L", "RGB")


@pytest.mark.parametrize("name", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_is_turned_upright(tmp_path: Path, name: str, orientation: int) -> None:
    stored = _STORED[orientation](_picture())
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    stored.save(tmp_path / "document", name, exif=exif, dpi=(96, 96))
    raster = _draw(tmp_path / "document")
    assert (_corners(raster.image), raster.image.size) == ("#...", (120, 60))
    assert raster.size == pytest.approx((90, 45), rel=0.001)


@pytest.mark.parametrize("orientation", [0, 9, 60_000])
def test_an_orientation_that_there_is_not_says_nothing(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    _picture().save(tmp_path / "document", "JPEG", exif=exif)
    assert _corners(_draw(tmp_path / "document").image) == "#..."


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_broken_exif_says_nothing(tmp_path: Path) -> None:
    _picture().save(tmp_path / "document", "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\xff")
    assert _corners(_draw(tmp_path / "document").image) == "#..."


def test_a_photo_is_scaled_down_and_a_small_picture_is_not_blown_up(tmp_path: Path) -> None:
    _picture(size=(3000, 4000)).save(tmp_path / "photo", "JPEG")
    raster = _draw(tmp_path / "photo", longest_side=1288)
    assert (raster.image.size, raster.size) == ((966, 1288), (2250.0, 3000.0))
    _picture(size=(200, 100)).save(tmp_path / "label", "PNG", dpi=(600, 600))
    raster = _draw(tmp_path / "label", longest_side=1288)
    assert raster.image.size == (200, 100)
    assert raster.size == pytest.approx((24, 12), rel=0.001)


def test_pixels_that_are_not_square_are_made_so(tmp_path: Path) -> None:
    """A fax of half the lines is as tall as one of all; the direction that has more pixels keeps them."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    _picture(size=(204, 98)).save(tmp_path / "fax", "TIFF", dpi=(204, 98))
    _picture(size=(204, 98)).rotate(90, expand=True).save(tmp_path / "turned", "TIFF", dpi=(98, 204), exif=exif)
    for name in ("fax", "turned"):
        raster = _draw(tmp_path / name)
        assert (_corners(raster.image), raster.image.size, raster.size) == ("#...", (204, 204), (72.0, 72.0))


@pytest.mark.parametrize("dpi", [(1, 1), (0, 0), (30, 4000), (50_000, 50_000)])
def test_a_resolution_that_can_not_be_is_not_believed(tmp_path: Path, dpi: tuple[int, int]) -> None:
    _picture().save(tmp_path / "document", "TIFF", dpi=dpi)
    assert _draw(tmp_path / "document").size == (120 * 72 / DEFAULT_DPI, 60 * 72 / DEFAULT_DPI)


@pytest.mark.parametrize("compression", ["group4", "tiff_lzw", "tiff_adobe_deflate", "jpeg", None])
def test_each_picture_of_a_tiff_is_a_page(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "fax.tif"
    turns: list[Callable[[Image.Image], Image.Image]] = [lambda image: image, ImageOps.mirror, ImageOps.flip]
    pages = [turn(_picture("1" if compression == "group4" else "RGB")) for turn in turns]
    pages[0].save(path, "TIFF", compression=compression, save_all=True, append_images=pages[1:])
    assert _inspect(path) == Inspection(3)
    file = open_file(str(path), None)
    drawn = [_corners(file.draw(page, ImageSpec(400), MAX_PIXELS).image) for page in (1, 2, 2, 3, 1)]
    assert drawn == ["#...", ".#..", ".#..", "..#.", "#..."]
    with pytest.raises(PageDamaged):
        file.draw(4, ImageSpec(400), MAX_PIXELS)
    file.close()


# Pillow's writer closes its file twice, which Python 3.13 complains of.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_thumbnails_in_a_tiff_are_no_pages(tmp_path: Path) -> None:
    path = tmp_path / "document"
    thumbnail = TiffImagePlugin.ImageFileDirectory_v2()
    thumbnail[254] = 1
    with TiffImagePlugin.AppendingTiffWriter(str(path), True) as writer:
        for picture, tags in ((_picture(), {}), (_picture(size=(12, 6)), thumbnail), (ImageOps.flip(_picture()), {})):
            picture.save(writer, "TIFF", tiffinfo=tags)
            writer.newFrame()
    assert _inspect(path) == Inspection(2)
    assert _corners(_draw(path, 2).image) == "..#."


def test_a_tiff_whose_list_of_pictures_breaks_off_says_so(tmp_path: Path) -> None:
    path = tmp_path / "document"
    _picture().save(path, "TIFF", save_all=True, append_images=[_picture(size=(60, 60))] * 2)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - 60 * 60 * 3 - 100])
    inspection = _inspect(path)
    assert (inspection.pages, _codes(inspection)) == (3, ["file_repaired"])
    assert _corners(_draw(path, 2).image) == "#..."
    with pytest.raises(PageDamaged):
        _draw(path, 3)


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_of_a_moving_image_the_first_picture_is_read_and_that_is_said(tmp_path: Path, name: str) -> None:
    _picture().save(tmp_path / "document", name, save_all=True, append_images=[ImageOps.flip(_picture())])
    inspection = _inspect(tmp_path / "document")
    assert (inspection.pages, _codes(inspection)) == (1, ["first_frame_only"])
    assert _corners(_draw(tmp_path / "document").image) == "#..."


@pytest.mark.parametrize(
    ("ink", "paper"),
    [pytest.param("black", ".", id="black ink is on white"), pytest.param("white", "#", id="white ink is on black")],
)
def test_ink_on_a_see_through_picture_is_seen(tmp_path: Path, ink: str, paper: str) -> None:
    picture = Image.new("RGBA", (120, 60), (0, 0, 0, 0))
    ImageDraw.Draw(picture).rectangle((0, 0, 59, 29), fill=ink)
    picture.save(tmp_path / "document", "PNG")
    corners = _corners(_draw(tmp_path / "document").image)
    assert corners[1:] == paper * 3 and corners[0] != paper


def _cut(path: Path, name: str) -> Path:
    """The upper half as `_picture`, the rest noise; the last tenth of the bytes is missing."""
    noise = Image.effect_noise((120, 60), 80).convert("RGB")
    noise.paste(_picture().crop((0, 0, 120, 30)), (0, 0))
    noise.save(path, name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 9 // 10])
    return path


@pytest.mark.parametrize("name", ["JPEG", "PNG", "BMP"])
def test_a_cut_picture_is_drawn_as_far_as_it_goes_and_that_is_said(tmp_path: Path, name: str) -> None:
    raster = _draw(_cut(tmp_path / "document", name))
    assert _corners(raster.image)[:2] == "#."
    assert [warning.code for warning in raster.warnings] == ["page_incomplete"]


def test_a_cut_gif_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(PageDamaged):
        _draw(_cut(tmp_path / "document", "GIF"))


def test_a_picture_of_which_nothing_is_left_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "document"
    _picture().save(path, "PNG")
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"IDAT") + 4])
    with pytest.raises(PageDamaged):
        _draw(path)


@pytest.mark.parametrize("content", [b"\xff\xd8\xff\xe0 no JPEG", b"RIFF\x08\0\0\0WEBPVP8 ", b"II*\0\xff\xff\xff\x00"])
def test_rubbish_is_a_damaged_image(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "document").write_bytes(content)
    with pytest.raises(DamagedImage):
        open_file(str(tmp_path / "document"), None)


def test_a_file_that_is_gone_is_the_stores_fault(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        open_file(str(tmp_path / "document"), None)


def test_a_picture_of_too_many_pixels_is_refused_before_one_is_made(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", pack("!IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)) + _chunk(b"IDAT")
    )
    with pytest.raises(ImageTooLarge):
        _inspect(path)
    with pytest.raises(PageTooLarge):
        _draw(path)


def test_one_page_of_too_many_pixels_costs_that_page_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pillow, "MAX_SOURCE_PIXELS", 120 * 60)
    path = tmp_path / "document"
    _picture().save(path, "TIFF", save_all=True, append_images=[_picture(size=(240, 60))])
    assert _inspect(path).pages == 2
    assert _corners(_draw(path, 1).image) == "#..."
    with pytest.raises(PageTooLarge):
        _draw(path, 2)


def test_a_picture_has_no_text_layer(tmp_path: Path) -> None:
    _picture().save(tmp_path / "document", "PNG")
    file = open_file(str(tmp_path / "document"), None)
    assert file.text(1) == ""
    file.close()


def test_a_drawn_page_does_not_stay_small(tmp_path: Path) -> None:
    """A JPEG is decoded at the scale that is asked for; the next drawing may ask for more."""
    _picture(size=(1600, 800)).save(tmp_path / "document", "JPEG")
    file = open_file(str(tmp_path / "document"), None)
    sizes: list[Any] = [file.draw(1, ImageSpec(side), MAX_PIXELS).image for side in (100, 1600)]
    assert [image.size for image in sizes] == [(100, 50), (1600, 800)]
    edge = sizes[1].convert("L").crop((790, 100, 810, 101)).tobytes()
    assert sum(60 < level < 200 for level in edge) <= 2, "blown up from a small one"
    file.close()
