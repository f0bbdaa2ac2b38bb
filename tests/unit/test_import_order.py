"""Imports point one way only: a room may import those below it, and none beside it."""

import ast
from collections.abc import Iterator
from pathlib import Path

APP = Path(__file__).parents[2] / "app"

LAYERS = [
    {"__main__", "cli", "main", "ocr"},
    {"api"},
    {"intake", "worker"},
    {"replicas"},
    {"fleet", "rendering", "profiles", "journal"},
    {"documents"},
    {"telemetry", "settings", "errors", "lifeline"},
]
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}

SAME_LAYER = {
    ("__main__", "cli"),
    ("cli", "main"),
    ("cli", "ocr"),
    ("settings", "errors"),
}
"""Imports within a layer; all others are errors."""


def room_of(path: Path) -> str:
    return path.relative_to(APP).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
            if node.module == "app":
                names = [f"app.{alias.name}" for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("app."))


def test_every_room_has_a_layer() -> None:
    rooms = {room_of(path) for path in APP.rglob("*.py")} - {"__init__"}
    assert rooms == set(RANK)


def test_imports_point_down() -> None:
    wrong = [
        f"{path.relative_to(APP)} imports {target}"
        for path in APP.rglob("*.py")
        for source in [room_of(path)]
        for target in imported_rooms(path)
        if source not in (target, "__init__") and RANK[target] <= RANK[source] and (source, target) not in SAME_LAYER
    ]
    assert wrong == []


def test_the_gateway_imports_neither_a_renderer_nor_an_ocr_engine() -> None:
    allowed = {"rendering/mupdf.py", "rendering/pdfium.py", "rendering/child.py", "replicas/cpu/paddle.py"}
    importers = {
        str(path.relative_to(APP))
        for path in APP.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
        if name.split(".")[0] in {"pymupdf", "pypdfium2", "faster_paddle"}
    }
    assert importers <= allowed
