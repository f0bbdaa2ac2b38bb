"""faster-paddle with PP-OCRv6 tiny: models inside the wheel, no download, the GIL released while it reads."""

from importlib.metadata import version

from app.errors import StartError
from app.replicas.cpu.engine import Box, Line

_MODEL_SIZE = "tiny"


class PaddleEngine:
    """Reads at about 2 CPU seconds a dense A4 page, on one thread: more throughput comes from more processes."""

    def __init__(self) -> None:
        """Load the models, about 0.1 s. Raises `StartError` where faster-paddle is not installed."""
        try:
            from faster_paddle import OcrEngine
        except ImportError as error:
            raise StartError(f"the CPU OCR engine is missing: pip install 'pagefleet[cpu]' ({error})") from error
        self._engine = OcrEngine(model_size=_MODEL_SIZE, threads=1)
        self.name = f"faster-paddle {version('faster-paddle')}"
        self.model = f"PP-OCRv6 {_MODEL_SIZE}"

    def read(self, image: bytes) -> list[Line]:
        """Raises `RuntimeError` for an image that can't be decoded."""
        return [
            Line(
                found["text"],
                Box(*found["topLeftCoord"], *found["bottomRightCoord"]),
                found["confidence"],
            )
            for found in self._engine.ocr(image)["bounds"].values()
        ]
