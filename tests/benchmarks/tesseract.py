"""The accuracy pages through Tesseract and through the embedded engine: `python -m tests.benchmarks.tesseract`.

Tesseract is Debian's `tesseract-ocr` with its English data, on one thread. Where it is missing it is installed by apt,
as root; where that fails the comparison is skipped, loudly.
"""

import asyncio
import os
import resource
import shutil
import subprocess
from pathlib import Path

import anyio

from tests.accuracy.kinds import kinds
from tests.accuracy.measure import measure
from tests.accuracy.ours import embedded_reader

_INSTALL = (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "tesseract-ocr"])
_READ = ("tesseract", "stdin", "stdout", "-l", "eng", "--psm", "3")


async def beside_tesseract(_folder: Path) -> None:
    """Both engines on every kind of page."""
    if not _is_installed():
        print("tesseract: SKIPPED: the program is not installed, and apt could not install it")
        return
    ours = embedded_reader()
    for kind in kinds():
        print(f"accuracy: {kind.name:16} ours      {await measure(kind, ours)}", flush=True)
        print(f"accuracy: {kind.name:16} tesseract {await measure(kind, _tesseract)}", flush=True)


async def _tesseract(image: bytes) -> tuple[str, float]:
    before = _children_cpu_seconds()
    done = await anyio.run_process(_READ, input=image, env={**os.environ, "OMP_THREAD_LIMIT": "1"})
    return done.stdout.decode(), _children_cpu_seconds() - before


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _is_installed() -> bool:
    if shutil.which("tesseract") is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        for command in _INSTALL:
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return shutil.which("tesseract") is not None


if __name__ == "__main__":
    asyncio.run(beside_tesseract(Path()))
