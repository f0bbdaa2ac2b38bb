"""`pagefleet ocr`: read files and folders through a gateway, its own or another."""

from app.ocr.command import Options, ocr

__all__ = ["Options", "ocr"]
