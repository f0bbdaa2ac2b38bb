"""How much is open at the server at once: enough to keep its replicas busy, never so much that others wait."""

import asyncio
from types import TracebackType
from typing import Self

MAX_UPLOADS = 4
MIN_DOCUMENTS = 4
MAX_PAGES = 128
"""Pages over which no more than `MIN_DOCUMENTS` are open; documents of one page need many at once."""


class Window:
    def __init__(self) -> None:
        self._uploads = 0
        self._documents = 0
        self._pages = 0
        self._changed = asyncio.Event()

    async def enter(self) -> "Place":
        """Wait for room. For one caller at a time."""
        while not self._has_room():
            self._changed.clear()
            await self._changed.wait()
        self._uploads += 1
        self._documents += 1
        return Place(self)

    def _has_room(self) -> bool:
        return self._uploads < MAX_UPLOADS and (self._documents < MIN_DOCUMENTS or self._pages < MAX_PAGES)

    def change(self, *, uploads: int = 0, documents: int = 0, pages: int = 0) -> None:
        self._uploads += uploads
        self._documents += documents
        self._pages += pages
        self._changed.set()


class Place:
    """One document's place in the window; as a context it is given back at the end."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._uploading = True
        self._pages = 0

    def uploaded(self, pages: int) -> None:
        self._uploading, self._pages = False, pages
        self._window.change(uploads=-1, pages=pages)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._window.change(uploads=-int(self._uploading), documents=-1, pages=-self._pages)
