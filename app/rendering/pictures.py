"""One picture of an image file: its size as shown, and its pixels as they look on paper."""

from collections.abc import Iterator
from contextlib import contextmanager

from PIL import ExifTags, Image, ImageFile
from PIL.Image import Resampling, Transpose
from PIL.TiffImagePlugin import TiffImageFile

from app.errors import PageDamaged
from app.rendering.blank import is_blank

DEFAULT_DPI = 96
"""Of pictures that state none, as in browsers and MuPDF."""
MIN_DPI, MAX_DPI = 30, 4800
"""What lies outside is a placeholder."""
MAX_DPI_RATIO = 3
"""Of the two directions; a coarse fax has 204 x 98."""
POINTS_PER_INCH = 72

_TURNS = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""How to turn a picture upright, by its EXIF orientation."""
_UPRIGHT = 1
_FIRST_SIDEWAYS = 5
"""From this orientation on the picture lies on its side."""

# Pillow's readers share no base but this: OSError, SyntaxError, ValueError, struct.error, EOFError and others.
PillowError = Exception


def _orientation(image: Image.Image) -> int:
    try:
        # Not the method of PNGs: it decodes the picture, to look behind it.
        value = int(Image.Image.getexif(image).get(ExifTags.Base.Orientation, _UPRIGHT))
    except PillowError:  # EXIF is often malformed, and says nothing then
        return _UPRIGHT
    return value if value in _TURNS else _UPRIGHT


def _dpi(image: Image.Image) -> tuple[float, float]:
    try:
        x, y = map(float, image.info.get("dpi", ()))
    except (TypeError, ValueError, ZeroDivisionError):
        return DEFAULT_DPI, DEFAULT_DPI
    sound = all(MIN_DPI <= value <= MAX_DPI for value in (x, y)) and max(x, y) <= MAX_DPI_RATIO * min(x, y)
    return (x, y) if sound else (DEFAULT_DPI, DEFAULT_DPI)


def shown_size(image: ImageFile.ImageFile) -> tuple[tuple[float, float], float]:
    """Width and height as shown, in points, and the zoom at which no pixel is lost and none invented.

    Where pixels are not square, that is the finer direction's, and the other one is stretched.
    """
    (width, height), (x, y) = image.size, _dpi(image)
    if _orientation(image) >= _FIRST_SIDEWAYS:
        x, y = y, x
        if not isinstance(image, TiffImageFile):  # whose size Pillow gives as shown
            width, height = height, width
    size = (round(width * POINTS_PER_INCH / x, 3), round(height * POINTS_PER_INCH / y, 3))
    return size, max(x, y) / POINTS_PER_INCH


def decode(image: ImageFile.ImageFile, pixels: tuple[int, int]) -> tuple[Image.Image, bool]:
    """The picture as shown, scaled to `pixels`, in mode `L` or `RGB`; and whether it is all there.

    Raises `PageDamaged`.
    """
    complete = _load(image, pixels)
    return _on_paper(_scaled(image, pixels)), complete


def _load(image: ImageFile.ImageFile, pixels: tuple[int, int]) -> bool:
    """Read the pixels, those of a JPEG at a scale that suffices for `pixels`; whether all are there."""
    image.draft(None, pixels if _orientation(image) < _FIRST_SIDEWAYS else pixels[::-1])
    try:
        image.load()
        return True
    except MemoryError:
        raise
    except PillowError as error:
        try:
            with _tolerance():
                image.load()
        except PillowError:
            raise PageDamaged from error
        if image.im.mode != image.mode:  # a GIF that was begun twice: its palette is lost
            raise PageDamaged from error
        return False


@contextmanager
def _tolerance() -> Iterator[None]:
    """Pillow keeps what could be decoded."""
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def _scaled(image: Image.Image, pixels: tuple[int, int]) -> Image.Image:
    """The loaded picture upright and of the size `pixels`, in mode `L`, `RGB` or `RGBA`."""
    turn = _TURNS.get(_orientation(image))  # none for a TIFF, which Pillow has turned
    simple = _eight_bit(image)
    upright = simple if turn is None else simple.transpose(turn)
    return upright.resize(pixels, Resampling.BICUBIC, reducing_gap=2.0)


def _eight_bit(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):
        return image.convert("I").point(lambda level: level * (1 / 257)).convert("L")
    if image.mode in ("I", "F"):  # of any range
        low, high = image.getextrema()
        assert isinstance(low, int | float) and isinstance(high, int | float)  # one band
        scale = 255 / ((high - low) or 1)
        return image.point(lambda level: level * scale - low * scale).convert("L")
    mode = "RGBA" if image.has_transparency_data else "L" if image.mode in ("1", "L") else "RGB"
    return image if image.mode == mode else image.convert(mode)  # `convert` would copy it all the same


def _on_paper(image: Image.Image) -> Image.Image:
    """A see-through picture on white, or on black where white shows nothing of it."""
    if image.mode != "RGBA":
        return image
    on_white, on_black = (Image.new("RGB", image.size, colour) for colour in ("white", "black"))
    for paper in (on_white, on_black):
        paper.paste(image, mask=image.getchannel("A"))
    return on_black if is_blank(on_white) and not is_blank(on_black) else on_white
