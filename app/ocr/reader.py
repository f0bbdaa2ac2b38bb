"""Reading many files at once through one client."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from app.ocr.client import Client, Json
from app.ocr.errors import Refused
from app.ocr.inputs import Input
from app.ocr.output import Output
from app.ocr.progress import Progress
from app.ocr.window import Place, Window


class Reader:
    def __init__(
        self, client: Client, output: Output, progress: Progress, options: dict[str, str], *, forget: bool
    ) -> None:
        """`options` go with every upload; `forget`: delete documents from the server once they are written."""
        self._client = client
        self._output = output
        self._progress = progress
        self._options = options
        self._forget = forget
        self._whole = True

    async def read(self, inputs: Sequence[Input]) -> bool:
        """Whether every page of every file was read; what was not is told, and stops no other file.

        Raises a group of `KeyRefused`, `ServerLost` or BrokenPipeError.
        """
        window = Window()
        before: asyncio.Task[None] | None = None
        async with asyncio.TaskGroup() as group:
            for item in inputs:
                place = await window.enter()
                before = group.create_task(self._read(item, place, before if self._output.in_order else None))
        return self._whole

    async def _read(self, item: Input, place: Place, before: asyncio.Task[None] | None) -> None:
        """Upload at once, and go on when the file `before` is done with."""
        document = None
        with place:
            try:
                document = await self._client.post(item.path, self._options)
                place.uploaded(document["pages"]["total"])
                self._progress.add_pages(document["pages"]["total"])
                if before is not None:
                    await asyncio.wait([before])
                document = await self._follow(item, document)
                self._whole &= document["state"] == "succeeded"
                await self._output.end(item, document, self._client)
                if self._forget:
                    await self._client.delete(document)
            except BrokenPipeError:
                raise
            except Refused as refused:
                self._failed(item, f"{refused.reason}: {refused.detail}")
            except OSError as error:
                self._failed(item, error.strerror or str(error))
        self._progress.document(item, document)

    async def _follow(self, item: Input, document: Json) -> Json:
        """The document as it ended, its pages handed on as they came."""
        self._output.begin(item)
        order = "page" if self._output.in_order else "completed"
        async with aclosing(self._client.events(document, order)) as events:
            async for event in events:
                if event["event"] == "page":
                    self._page(item, event["page"])
                document = event.get("document", document)
        return document

    def _page(self, item: Input, page: Json) -> None:
        self._progress.page()
        self._output.page(item, page)
        if page["error"] is not None:
            error = page["error"]
            self._progress.tell(f"{item.path}: page {page['page']}: {error['code']}: {error['detail']}")

    def _failed(self, item: Input, reason: str) -> None:
        self._whole = False
        self._progress.tell(f"{item.path}: {reason}")
