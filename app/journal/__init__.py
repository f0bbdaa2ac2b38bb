"""Durable truth: documents, pages, claims, events, and the uploads' bytes."""

from app.journal.blobs import Blobs, FolderBlobs
from app.journal.changes import Changes, Watch
from app.journal.journal import Journal

__all__ = ["Blobs", "Changes", "FolderBlobs", "Journal", "Watch"]
