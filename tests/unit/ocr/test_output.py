from pathlib import Path

import pytest

from app.errors import StartError
from app.ocr.inputs import Input
from app.ocr.output import Folder


def item(name: str) -> Input:
    return Input(Path("in", name), Path(name))


@pytest.mark.parametrize(
    ("name", "target", "partial"),
    [
        ("a.pdf", "a.md", "a.partial.md"),
        ("2024/march/scan.JPG", "2024/march/scan.md", "2024/march/scan.partial.md"),
        ("report.v2", "report.v2.md", "report.v2.partial.md"),
        ("report.v2.pdf", "report.v2.md", "report.v2.partial.md"),
    ],
)
def test_an_output_is_named_after_its_input(tmp_path: Path, name: str, target: str, partial: str) -> None:
    folder = Folder(tmp_path, "md", [item(name)])
    assert folder.target(item(name)) == tmp_path / target
    assert folder.partial_target(item(name)) == tmp_path / partial


@pytest.mark.parametrize(("one", "two"), [("a.pdf", "a.png"), ("x/a.pdf", "x/a.pdf"), ("a.pdf", "a.partial.pdf")])
def test_two_inputs_with_one_output_are_refused(tmp_path: Path, one: str, two: str) -> None:
    with pytest.raises(StartError, match="would both be written to"):
        Folder(tmp_path / "out", "md", [item(one), item(two)])
    assert not (tmp_path / "out").exists()


def test_a_folder_that_can_not_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match="can't make the folder"):
        Folder(tmp_path / "file" / "out", "md", [])
