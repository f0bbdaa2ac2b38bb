"""Where the text goes: to standard output as it comes, or into a folder, one file a document."""

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from app.errors import StartError
from app.ocr.client import Client, Json
from app.ocr.errors import Refused
from app.ocr.inputs import SUFFIXES, Input
from app.ocr.progress import Progress


class Output(Protocol):
    in_order: bool
    """Whether documents are wanted one after another, and their pages by number."""

    def begin(self, item: Input) -> None: ...

    def page(self, item: Input, page: Json) -> None: ...

    async def end(self, item: Input, document: Json, client: Client) -> None:
        """Raises `Refused` when the document has no text."""
        ...


class Stdout:
    """Pages as they come, documents in the order given; several are titled where the format has no other place for it.

    Writing raises BrokenPipeError when nobody reads any more.
    """

    in_order = True

    def __init__(self, format: str, progress: Progress, *, titled: bool) -> None:
        self._format = format
        self._progress = progress
        self._titled = titled and format in ("md", "txt")

    def begin(self, item: Input) -> None:
        if self._titled:
            self._write(f"==> {item.path} <==\n")

    def page(self, item: Input, page: Json) -> None:
        if self._format == "ndjson":
            self._write(json.dumps({"file": str(item.path), **page}, ensure_ascii=False) + "\n")
        elif self._format != "json" and page["error"] is None:
            self._write(page["text"] + ("\n\f" if self._format == "txt" else "\n\n"))

    async def end(self, item: Input, document: Json, client: Client) -> None:
        """JSON is one value a document and comes whole, by way of a file: a broken answer starts again."""
        if self._format == "json":
            with tempfile.TemporaryDirectory(prefix="pagefleet-") as folder:
                result = Path(folder, "result")
                await client.save(document, self._format, result)
                self._copy(result)
        elif document["state"] in ("failed", "cancelled"):
            raise _refusal(document)

    def _copy(self, file: Path) -> None:
        with self._progress.paused(), file.open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
            sys.stdout.buffer.flush()

    def _write(self, text: str) -> None:
        with self._progress.paused():
            sys.stdout.buffer.write(text.encode(errors="replace"))
            sys.stdout.buffer.flush()


class Folder:
    """One file a document, made under another name and renamed: a file that exists is whole.

    A document with pages that could not be read goes to `NAME.partial.FORMAT`, so that `NAME.FORMAT` says that the
    document is done.
    """

    in_order = False

    def __init__(self, root: Path, format: str, inputs: Sequence[Input]) -> None:
        """Raises `StartError`: two inputs have one output, or the folder can't be made."""
        self._root = root
        self._format = format
        owners: dict[Path, Input] = {}
        for item in inputs:
            for target in (self.target(item), self.partial_target(item)):
                if target in owners:
                    raise StartError(f"{owners[target].path} and {item.path} would both be written to {target}")
                owners[target] = item
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StartError(f"can't make the folder {root}: {error.strerror}") from None

    def target(self, item: Input) -> Path:
        return self._named(item, self._format)

    def partial_target(self, item: Input) -> Path:
        return self._named(item, f"partial.{self._format}")

    def _named(self, item: Input, suffix: str) -> Path:
        stem = item.name.stem if item.name.suffix.lower() in SUFFIXES else item.name.name
        return self._root / item.name.with_name(f"{stem}.{suffix}")

    def begin(self, item: Input) -> None:
        pass

    def page(self, item: Input, page: Json) -> None:
        pass

    async def end(self, item: Input, document: Json, client: Client) -> None:
        whole = document["state"] == "succeeded"
        target = self.target(item) if whole else self.partial_target(item)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.part")
        try:
            await client.save(document, self._format, unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        if whole:
            self.partial_target(item).unlink(missing_ok=True)


def _refusal(document: Json) -> Refused:
    error, pages = document["error"], document["pages"]
    if error is not None:
        return Refused(error["code"], error["detail"])
    return Refused(f"document_{document['state']}", f"{pages['succeeded']} of {pages['total']} pages were read")
