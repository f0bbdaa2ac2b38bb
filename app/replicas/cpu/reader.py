"""The one slot: pages in line, first come, first served; each through the engine and the layout."""

import anyio
from anyio import to_thread

from app.replicas.cpu.engine import Engine
from app.replicas.cpu.errors import EngineFailed
from app.replicas.cpu.layout import markdown
from app.replicas.cpu.meters import Meters
from app.telemetry.logs import get_logger

logger = get_logger("replicas.cpu")


class PageReader:
    """Reads one page at a time, in a thread, so that the server answers meanwhile."""

    def __init__(self, engine: Engine, meters: Meters) -> None:
        self._engine = engine
        self._meters = meters
        self._slot = anyio.Lock()

    @property
    def fingerprint(self) -> str:
        """Engine, version and model: what decides the answer."""
        return f"{self._engine.name}, {self._engine.model}"

    async def read(self, image: bytes) -> str:
        """The page's text as Markdown. Raises `EngineFailed`.

        A caller that is cancelled while it waits leaves the line; during the reading it keeps the slot until the
        engine is done, since an engine can't be stopped.
        """
        with self._meters.waiting.track_inprogress():
            await self._slot.acquire()
        try:
            with self._meters.running.track_inprogress():
                return await self._read(image)
        finally:
            self._slot.release()

    async def _read(self, image: bytes) -> str:
        try:
            lines = await to_thread.run_sync(self._engine.read, image)
        except Exception as error:
            logger.exception("the engine failed", engine=self._engine.name)
            raise EngineFailed(f"{self._engine.name} failed: {error}") from error
        self._meters.steps.inc()
        text = markdown(lines)
        self._meters.steps.inc()
        return text
