"""The page worker: claim → render → route → judge → commit."""

from app.worker.sweeper import Sweeper
from app.worker.worker import Worker

__all__ = ["Sweeper", "Worker"]
