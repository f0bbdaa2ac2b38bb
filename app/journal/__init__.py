"""Durable truth: documents, pages, claims and events."""

from app.journal.changes import Changes, Watch
from app.journal.journal import Journal

__all__ = ["Changes", "Journal", "Watch"]
