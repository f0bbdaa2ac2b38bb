"""The renderer of images: Pillow. A page is one picture: each of a TIFF, the first of anything else."""

from pathlib import Path
from typing import BinaryIO

from PIL import (
    Image,
    ImageFile,
    WebPImagePlugin,  # noqa: F401 (Pillow registers this and TIFF late, with all its other formats)
)
from PIL.TiffImagePlugin import TiffImageFile

from app.documents.records import ImageSpec, Warn
from app.errors import DamagedImage, ImageTooLarge, PageDamaged, PageTooLarge, StoreUnavailable
from app.rendering.pictures import PillowError, decode, shown_size
from app.rendering.renderer import INCOMPLETE, Raster
from app.rendering.results import Inspection
from app.rendering.scale import zoom

MAX_SOURCE_PIXELS = 100_000_000
"""Of a picture, before it is scaled; in colour they take 400 MB. A0 at 300 DPI has 139 million, A1 70 million."""

_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
_NEW_SUBFILE_TYPE = 254
_REDUCED_OR_MASK = 1 | 4
"""Bits of a TIFF's NewSubfileType: a thumbnail of another picture; a transparency mask for one."""

# Its own limit speaks up at the opening only for twice as much, and with a warning below that.
Image.MAX_IMAGE_PIXELS = None


def open_file(path: str, password: str | None) -> "PillowFile":
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 (PillowFile closes it)
    except FileNotFoundError as error:
        raise StoreUnavailable("the file is gone") from error
    try:
        return PillowFile(stream)
    except PillowError as error:
        stream.close()
        raise DamagedImage from error


class PillowFile:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._image = _open(stream)
        self._frames, self._complete = (
            _tiff_frames(self._image) if isinstance(self._image, TiffImageFile) else ([0], True)
        )

    def inspect(self) -> Inspection:
        pages = len(self._frames)
        if pages == 1 and _pixel_count(self._picture(1)) > MAX_SOURCE_PIXELS:
            raise ImageTooLarge(f"the image has more than {MAX_SOURCE_PIXELS} pixels", limit=MAX_SOURCE_PIXELS)
        return Inspection(pages, self._warnings())

    def draw(self, page: int, spec: ImageSpec, max_pixels: int) -> Raster:
        try:
            image = self._picture(page)
        except PillowError as error:
            raise PageDamaged from error
        if _pixel_count(image) > MAX_SOURCE_PIXELS:
            raise PageTooLarge(f"the picture has more than {MAX_SOURCE_PIXELS} pixels")
        size, native_zoom = shown_size(image)
        scale = zoom(size, spec.longest_side_pixels, max_pixels, native_zoom)
        pixels = (max(1, round(size[0] * scale)), max(1, round(size[1] * scale)))
        drawn, complete = decode(image, pixels)
        raster = Raster(drawn, size, () if complete else (INCOMPLETE,))
        if not complete and raster.is_plain():
            raise PageDamaged
        return raster

    def text(self, page: int) -> str:
        return ""

    def close(self) -> None:
        self._stream.close()

    def _picture(self, page: int) -> ImageFile.ImageFile:
        frame = self._frames[page - 1]
        if self._image.tell() == frame:  # a picture that is decoded stays so, at the scale that was asked for first
            self._image = _open(self._stream)
        self._image.seek(frame)
        return self._image

    def _warnings(self) -> tuple[Warn, ...]:
        if not self._complete:
            return (Warn("file_repaired", "the file is damaged: pages may be missing"),)
        # A JPEG of several pictures (MPO) holds one and its preview, or what a second lens saw.
        if self._image.format in ("GIF", "PNG", "WEBP") and getattr(self._image, "is_animated", False):
            return (Warn("first_frame_only", "a moving image: only its first picture is read"),)
        return ()


def _open(stream: BinaryIO) -> ImageFile.ImageFile:
    return Image.open(stream, formats=_FORMATS)


def _tiff_frames(image: TiffImageFile) -> tuple[list[int], bool]:
    """Numbers (from 0) of the pictures of a TIFF that are pages, and whether all could be listed.

    The one at which the list breaks off is a page too, so that it fails by its number.
    """
    frames: list[int] = []
    frame = 0
    while True:
        try:
            image.seek(frame)
        except EOFError:
            return frames or [0], True
        except PillowError:
            return [*frames, frame], False
        if not image.tag_v2.get(_NEW_SUBFILE_TYPE, 0) & _REDUCED_OR_MASK:
            frames.append(frame)
        frame += 1


def _pixel_count(image: Image.Image) -> int:
    return image.width * image.height
