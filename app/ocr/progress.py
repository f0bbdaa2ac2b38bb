"""What is said on standard error while files are read: bars on a terminal, lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from tqdm import tqdm

from app.ocr.client import Json
from app.ocr.inputs import Input


class Progress(Protocol):
    def tell(self, line: str) -> None:
        """Say something that stays."""
        ...

    def add_pages(self, count: int) -> None:
        """A document was accepted; so many pages more are to come."""
        ...

    def page(self) -> None:
        """A page ended."""
        ...

    def document(self, item: Input, document: Json | None) -> None:
        """A file is done with; None: it was refused."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """While standard output is written."""
        ...


@contextmanager
def showing_progress(documents: int) -> Iterator[Progress]:
    if not sys.stderr.isatty():
        yield Lines(documents)
        return
    bars = Bars(documents)
    try:
        yield bars
    finally:
        bars.close()


class Bars:
    """Two bars: documents, and the pages of those that are open or done, with their rate and the time left."""

    def __init__(self, documents: int) -> None:
        shape: dict[str, Any] = {"file": sys.stderr, "dynamic_ncols": True}
        self._documents = tqdm(total=documents, desc="documents", unit="doc", position=0, **shape)
        self._pages = tqdm(total=0, desc="pages    ", unit="page", position=1, **shape)

    def tell(self, line: str) -> None:
        tqdm.write(line, file=sys.stderr)

    def add_pages(self, count: int) -> None:
        self._pages.total = (self._pages.total or 0) + count
        self._pages.refresh()

    def page(self) -> None:
        self._pages.update()

    def document(self, item: Input, document: Json | None) -> None:
        self._documents.update()

    def paused(self) -> AbstractContextManager[None]:
        return tqdm.external_write_mode(file=sys.stdout)

    def close(self) -> None:
        self._pages.close()
        self._documents.close()


class Lines:
    """One line a document."""

    def __init__(self, documents: int) -> None:
        self._total = documents
        self._done = 0
        self._pages = 0
        self._started = time.monotonic()

    def tell(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def add_pages(self, count: int) -> None:
        pass

    def page(self) -> None:
        self._pages += 1

    def document(self, item: Input, document: Json | None) -> None:
        self._done += 1
        if document is not None:
            pages, rate = document["pages"], self._pages / (time.monotonic() - self._started)
            read = f"{pages['succeeded']} of {pages['total']} pages read, {rate:.1f} pages/s"
            self.tell(f"[{self._done}/{self._total}] {item.path}: {read}")

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()
