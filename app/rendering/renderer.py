"""What a renderer offers. `mupdf` and `pdfium` are the two; they are loaded in render processes only."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from app.documents.records import ImageSpec, Warn
from app.rendering.results import Inspection

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Raster:
    """A page as pixels."""

    image: "Image"
    """Mode `L` or `RGB`."""
    size: tuple[float, float]
    """Width and height as shown, in points."""
    warnings: tuple[Warn, ...] = ()

    def is_blank(self) -> bool:
        """Whether all pixels are of one colour."""
        return all(len(set(band.getextrema())) == 1 for band in self.image.split())


class PdfFile(Protocol):
    """An open PDF."""

    def inspect(self) -> Inspection:
        """Raises `DamagedPdf`, `NoPages`."""

    def draw(self, page: int, spec: ImageSpec, max_pixels: int) -> Raster:
        """Page `page` (from 1) with form values and annotations.

        Raises `PageTooLarge`, `PageDamaged`, `RenderFailed`.
        """

    def close(self) -> None: ...


class Renderer(Protocol):
    """A module that opens PDFs."""

    def open_file(self, path: str, password: str | None) -> PdfFile:
        """Raises what can be wrong with a file: `DamagedPdf`, `UnsupportedType`, `PasswordRequired`, `PasswordWrong`,
        `PdfLocked`; and `StoreUnavailable` when it is not there.
        """
