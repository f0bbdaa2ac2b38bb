"""The one slot: pages in line, first come, first served; each through the engine and the layout."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from anyio import to_thread

from app.replicas.cpu.engine import Engine
from app.replicas.cpu.errors import EngineFailed
from app.replicas.cpu.layout import markdown
from app.replicas.cpu.meters import Meters
from app.replicas.cpu.recognition import Recognition, Recognizer
from app.telemetry.logs import get_logger

logger = get_logger("replicas.cpu")


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page's text as Markdown, and how it was read."""

    text: str
    recognition: Recognition

    def facts(self) -> Mapping[str, Any]:
        """What the answer says beside the text: `confidence` (0 to 1; 1 where there is no line), `rotation` and
        `skew_degrees` (clockwise, by which the image was turned to be upright), `model`, and `warnings`.
        """
        found = self.recognition
        return {
            "confidence": round(found.confidence, 4),
            "rotation": found.rotation,
            "skew_degrees": found.skew_degrees,
            "model": found.model,
            "warnings": [{"code": code, "detail": detail} for code, detail in _warnings(found)],
        }


def _warnings(found: Recognition) -> Iterator[tuple[str, str]]:
    if not found.is_legible:
        yield "low_confidence", f"the lines were read with a confidence of {found.confidence:.2f} on average"
    if found.rotation:
        yield "rotated", f"the image was turned clockwise by {found.rotation} degrees to read it"
    if found.left_out:
        yield "lines_left_out", f"{found.left_out} lines that looked like show-through or noise were left out"


class PageReader:
    """Reads one page at a time, in a thread, so that the server answers meanwhile."""

    def __init__(self, engine: Engine, meters: Meters) -> None:
        self._engine = engine
        self._meters = meters
        self._recognizer = Recognizer(engine, meters.steps.inc)
        self._slot = anyio.Lock()

    @property
    def fingerprint(self) -> str:
        """Engine, version and models: what decides the answer."""
        return ", ".join([self._engine.name, *self._engine.models])

    async def read(self, image: bytes) -> ReadPage:
        """Raises `EngineFailed`.

        A caller that is cancelled while it waits leaves the line; during the reading it keeps the slot until the
        engine is done, since an engine can't be stopped.
        """
        with self._meters.waiting.track_inprogress():
            await self._slot.acquire()
        try:
            with self._meters.running.track_inprogress():
                return await to_thread.run_sync(self._read, image)
        finally:
            self._slot.release()

    def _read(self, image: bytes) -> ReadPage:
        try:
            found = self._recognizer.recognize(image)
        except Exception as error:
            logger.exception("the engine failed", engine=self._engine.name)
            raise EngineFailed(f"{self._engine.name} failed: {error}") from error
        page = ReadPage(markdown(found.lines), found)
        self._meters.steps.inc()
        return page
