from pathlib import Path

import pytest

from app.errors import StartError
from app.ocr.inputs import find_inputs


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_folder_gives_its_pdfs_and_images_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b.pdf", "a/z.PNG", "a/b/c.jpeg", "c.tif", "notes.txt", ".hidden.pdf", ".git/x.pdf", "a/pdf"):
        touch(tmp_path / name)
    names = [str(item.name) for item in find_inputs([tmp_path])]
    assert names == ["a/b/c.jpeg", "a/z.PNG", "b.pdf", "c.tif"]


def test_files_and_folders_keep_the_order_in_which_they_were_given(tmp_path: Path) -> None:
    letter, scan = touch(tmp_path / "letter.dat"), touch(tmp_path / "folder" / "scan.pdf")
    inputs = find_inputs([letter, scan.parent, scan])
    assert [item.path for item in inputs] == [letter, scan, scan]
    assert [str(item.name) for item in inputs] == ["letter.dat", "scan.pdf", "scan.pdf"]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"no such file: .*missing\.pdf"):
        find_inputs([tmp_path / "missing.pdf"])
    touch(tmp_path / "notes.txt")
    with pytest.raises(StartError, match="no PDF and no image in"):
        find_inputs([tmp_path])
