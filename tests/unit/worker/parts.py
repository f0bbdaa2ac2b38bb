"""What the tests of the worker build it from: claims, a pen instead of render processes, a fleet on stand-ins."""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.documents.records import Claim, ImageSpec, Warn
from app.fleet import Fleet
from app.journal.blobs import FolderBlobs
from app.rendering import Drawing, Rendering
from app.settings import Settings
from tests.waiting import until

DEADLINE_SECONDS = 20
SIZE = (595.0, 842.0)
WARNING = Warn("page_incomplete", "a picture is missing")
RENDER_SECONDS = 0.01
IMAGE_BYTES = 4_000
"""Base64 text of one drawing."""


@dataclass(eq=False)
class Pen(Rendering):
    """Draws at once and in this process. `fault(page)` gives the exception that drawing a page raises, if any."""

    fault: Callable[[int], Exception | None] = lambda _: None
    drawn: list[tuple[str, int]] = field(default_factory=list)
    """Document id, by the path of its blob, and page number."""
    blank: bool = False
    layer: str | Exception = ""
    """The text layer of every page, or what reading it raises."""

    def __post_init__(self) -> None:
        super().__init__(Settings())

    async def draw(
        self, path: Path, media_type: str, page: int, spec: ImageSpec, password: str | None = None
    ) -> Drawing:
        self.drawn.append((path.parent.name, page))
        return self.draw_now(page)

    def draw_now(self, page: int) -> Drawing:
        if fault := self.fault(page):
            raise fault
        return replace(drawing(page), blank=self.blank)

    async def text(self, path: Path, page: int, password: str | None = None) -> str:
        if isinstance(self.layer, Exception):
            raise self.layer
        return self.layer


def drawing(page: int = 1) -> Drawing:
    image = base64.b64encode(f"page {page} ".encode().ljust(IMAGE_BYTES // 4 * 3, b"."))
    return Drawing(
        image_base64=image,
        media_type="image/jpeg",
        width=100,
        height=140,
        size=SIZE,
        warnings=(WARNING,),
        seconds=RENDER_SECONDS,
    )


def claim(document: str = "book", page: int = 1, **values: Any) -> Claim:
    return Claim(
        **{
            "document_id": document,
            "tenant": "default",
            "page": page,
            "number": 1,
            "profile": "generic",
            "priority": 3,
            "blob_key": f"v1/default/{document}/source",
            "password": None,
            "attempts": 0,
            "lane_deaths": 0,
            "queued_at": datetime.now(UTC),
            **values,
        }
    )


def store(blobs_dir: Path, key: str) -> FolderBlobs:
    """A blob store that holds a file under `key`."""
    path = blobs_dir / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return FolderBlobs(blobs_dir)


@asynccontextmanager
async def running_fleet(*urls: str, **settings: Any) -> AsyncIterator[Fleet]:
    """A fleet whose lanes are all up when it begins."""
    fleet = Fleet(Settings(endpoints=urls, **{"health_interval_seconds": 0.02, **settings}))
    await fleet.start()
    try:
        await until(lambda: all(lane.state.takes_pages for lane in fleet.lanes()), DEADLINE_SECONDS)
        yield fleet
    finally:
        await fleet.stop()
