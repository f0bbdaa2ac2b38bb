"""Engines that stand in for a real one."""

import threading

from app.replicas.cpu.engine import Box, Line


class FixedEngine:
    """Finds the same lines on every page."""

    name = "fixed 1"
    models = ("none",)

    def __init__(self, *texts: str) -> None:
        self._lines = [
            Line(text, Box(0, 90 * row, 15 * len(text), 90 * row + 30), 1.0) for row, text in enumerate(texts)
        ]

    def read(self, image: bytes, model: str) -> list[Line]:
        return self._lines


class FaultyEngine(FixedEngine):
    """Fails on every page."""

    def read(self, image: bytes, model: str) -> list[Line]:
        raise RuntimeError("no memory left")


class GatedEngine(FixedEngine):
    """Reads a page only when the test opens the gate; remembers the pages."""

    def __init__(self, *texts: str) -> None:
        super().__init__(*texts)
        self.close()

    def close(self) -> None:
        """Close the gate and forget the pages."""
        self.gate = threading.Event()
        self.images: list[bytes] = []

    def read(self, image: bytes, model: str) -> list[Line]:
        self.images.append(image)
        assert self.gate.wait(30)
        return self._lines


class ScriptedEngine:
    """Gives one answer after the other; remembers images and models."""

    name = "scripted 1"
    models: tuple[str, ...] = ("fast", "better")

    def __init__(self, *answers: list[Line]) -> None:
        self._answers = list(answers)
        self.images: list[bytes] = []
        self.asked: list[str] = []

    def read(self, image: bytes, model: str) -> list[Line]:
        self.images.append(image)
        self.asked.append(model)
        return self._answers.pop(0)
