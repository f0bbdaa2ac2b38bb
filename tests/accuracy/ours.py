"""The embedded engine and its layout, in this process."""

import time

from app.replicas.cpu.meters import Meters
from app.replicas.cpu.paddle import PaddleEngine
from app.replicas.cpu.reader import PageReader
from tests.accuracy.measure import Reader


def embedded_reader() -> Reader:
    reader = PageReader(PaddleEngine(), Meters())

    async def read(image: bytes) -> tuple[str, float]:
        started = time.process_time()
        page = await reader.read(image)
        return page.text, time.process_time() - started

    return read
