"""What a renderer offers. `mupdf` and `pdfium` are those of PDFs, `pillow` that of images.

They are loaded in render processes only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from app.documents.records import ImageSpec, Warn
from app.rendering.results import Inspection

if TYPE_CHECKING:
    from PIL.Image import Image


INCOMPLETE = Warn("page_incomplete", "parts of the page may be missing")


@dataclass(frozen=True, slots=True)
class Raster:
    """A page as pixels."""

    image: "Image"
    """Mode `L` or `RGB`."""
    size: tuple[float, float]
    """Width and height as shown, in points."""
    warnings: tuple[Warn, ...] = ()

    def is_plain(self) -> bool:
        """Whether all pixels are of one colour."""
        return all(len(set(band.getextrema())) == 1 for band in self.image.split())


class OpenFile(Protocol):
    def inspect(self) -> Inspection:
        """Raises `DamagedPdf`, `NoPages`, `ImageTooLarge`."""

    def draw(self, page: int, spec: ImageSpec, max_pixels: int) -> Raster:
        """Page `page` (from 1) with form values and annotations.

        Raises `PageTooLarge`, `PageDamaged`, `RenderFailed`.
        """

    def text(self, page: int) -> str:
        """The text layer of page `page` (from 1), its blocks parted by empty lines; empty where there is none.

        Raises `PageDamaged`, `RenderFailed`.
        """

    def close(self) -> None: ...


class Renderer(Protocol):
    """A module that opens files of its kind."""

    def open_file(self, path: str, password: str | None) -> OpenFile:
        """Raises what can be wrong with a file: `DamagedPdf`, `UnsupportedType`, `PasswordRequired`, `PasswordWrong`,
        `PdfLocked`, `DamagedImage`; and `StoreUnavailable` when it is not there.
        """
