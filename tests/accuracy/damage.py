"""What scanners and mail programs do to a page."""

import io
import random
from statistics import NormalDist

from PIL import Image, ImageChops, ImageFilter

_TILE_PIXELS = 512


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


def noise(image: Image.Image, sigma: float) -> Image.Image:
    """Gaussian noise, in grey levels, the same in each run."""
    levels = [round(NormalDist(128, sigma).inv_cdf((level + 0.5) / 256)) for level in range(256)]
    tile = Image.frombytes("L", (_TILE_PIXELS, _TILE_PIXELS), random.Random(7).randbytes(_TILE_PIXELS**2))
    tile = tile.point([min(max(level, 0), 255) for level in levels])
    grain = Image.new("L", image.size)
    for left in range(0, image.width, _TILE_PIXELS):
        for top in range(0, image.height, _TILE_PIXELS):
            grain.paste(tile, (left, top))
    return ImageChops.add(image.convert("L"), grain, offset=-128).convert("RGB")


def skew(image: Image.Image, degrees: float) -> Image.Image:
    """Turned counter-clockwise, on white, at the same size."""
    return image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor="white")


def quarter_turns(image: Image.Image, degrees: int) -> Image.Image:
    """Turned counter-clockwise by a multiple of 90 degrees."""
    return image.rotate(degrees, expand=True)


def scan(image: Image.Image) -> Image.Image:
    """A bad scan: blurred, grey, skewed, grainy, and squeezed for mail."""
    paper = skew(image, 1.2).filter(ImageFilter.GaussianBlur(1.0)).point(lambda level: 30 + level * 0.8)
    return jpeg(noise(paper, 18), 40)
