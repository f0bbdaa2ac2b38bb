"""The files to read: those named, and those in the folders named."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import StartError

SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".gif", ".bmp"})
"""What is taken from a folder, in upper case too; a file named by itself is taken whatever its name."""


@dataclass(frozen=True, slots=True)
class Input:
    path: Path
    name: Path
    """The path inside the folder that was given; of a file that was given itself its bare name."""


def find_inputs(paths: Sequence[Path]) -> list[Input]:
    """All files in the order given, those of a folder in sorted order, without hidden ones.

    Raises `StartError`: a path is neither, a folder can't be read or holds nothing to read.
    """
    return [found for path in paths for found in _find(path)]


def _find(path: Path) -> list[Input]:
    if path.is_file():
        return [Input(path, Path(path.name))]
    if not path.is_dir():
        raise StartError(f"no such file: {path}")
    inputs = [Input(file, file.relative_to(path)) for file in sorted(_walk(path))]
    if not inputs:
        raise StartError(f"there is no PDF and no image in {path}")
    return inputs


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES:
                yield Path(root, name)


def _refuse(error: OSError) -> None:
    raise StartError(f"can't read {error.filename}: {error.strerror}")
