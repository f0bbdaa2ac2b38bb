"""Files inspected and their pages drawn, by PyMuPDF, pypdfium2 and Pillow in processes that may die.

The gateway imports none of those libraries: PyMuPDF holds the GIL for a whole page, crashes with two threads, and can
loop for ever in C, where only a signal ends it.
"""

from typing import TYPE_CHECKING, Any

from app.rendering.results import Drawing, Inspection

if TYPE_CHECKING:
    from app.rendering.rendering import Rendering

__all__ = ["Drawing", "Inspection", "Rendering"]


def __getattr__(name: str) -> Any:
    # Late, because `python -m app.rendering.child` runs this file too: the gateway's side (asyncio, metrics, logs)
    # would cost each child 20 MiB and a tenth of a second.
    if name == "Rendering":
        from app.rendering.rendering import Rendering

        return Rendering
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
