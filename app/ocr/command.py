"""The command from its options to its exit status."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import StartError
from app.ocr.client import Client, connect
from app.ocr.errors import KeyRefused, ServerLost
from app.ocr.gateway import gateway
from app.ocr.inputs import Input, find_inputs
from app.ocr.output import Folder, Stdout
from app.ocr.patience import Contact
from app.ocr.progress import showing_progress
from app.ocr.reader import Reader


@dataclass(frozen=True, slots=True)
class Options:
    paths: Sequence[Path]
    """Files, and folders that are searched for files."""
    server: str | None = None
    """Base URL of a running gateway; None starts one and stops it at the end."""
    api_key: str | None = field(default=None, repr=False)
    """Sent to `server`; a gateway that is started needs none."""
    output_dir: Path | None = None
    """None: the text goes to standard output."""
    format: str = "md"
    pages: str | None = None
    """Page range of every file, in the words of the API; None: all."""
    overwrite: bool = False
    """Read files whose output exists already, too."""


async def ocr(options: Options) -> int:
    """Read files; 0 if every page of every file was read, else 1. SIGTERM cancels it, as Ctrl-C does.

    Raises `StartError`.
    """
    task = asyncio.current_task()
    assert task is not None
    # Not by raising SIGINT: a job in the background ignores that, and must still end.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    inputs = find_inputs(options.paths)
    folder = None
    if options.output_dir is not None:
        folder = Folder(options.output_dir, options.format, inputs)
        inputs = inputs if options.overwrite else _without_done(inputs, folder)
    elif options.overwrite:
        raise StartError("--overwrite goes with --output-dir")
    return await _read(inputs, folder, options) if inputs else 0


def _without_done(inputs: Sequence[Input], folder: Folder) -> list[Input]:
    waiting = [item for item in inputs if not folder.target(item).exists()]
    if len(waiting) < len(inputs):
        done = f"{len(inputs) - len(waiting)} of {len(inputs)} files skipped"
        print(f"{done}: their output exists (--overwrite reads them again)", file=sys.stderr)
    return waiting


async def _read(inputs: Sequence[Input], folder: Folder | None, options: Options) -> int:
    whole = False
    async with gateway(options.server) as server, connect(server.url, own=server.own, api_key=options.api_key) as http:
        with showing_progress(len(inputs)) as progress:
            client = Client(http, Contact(progress.tell, server.is_gone))
            await client.check()
            output = folder or Stdout(options.format, progress, titled=len(inputs) > 1)
            upload_options = {} if options.pages is None else {"pages": options.pages}
            reader = Reader(client, output, progress, upload_options, forget=server.own)
            try:
                whole = await reader.read(inputs)
            except* BrokenPipeError:
                # Nobody reads the text any more, which is no fault; the flush at exit must find no closed pipe.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            except* (KeyRefused, ServerLost) as lost:
                progress.tell(f"pagefleet: {lost.exceptions[0]}")
    return 0 if whole else 1
