"""Pages that this gateway works on."""

import asyncio
from dataclasses import dataclass

from app.documents.records import Claim
from app.worker.page_reader import Progress


@dataclass(slots=True, eq=False)
class ActivePage:
    """A claimed page and the task that reads it."""

    claim: Claim
    progress: Progress
    task: "asyncio.Task[None]"
    storing: bool = False
    """It needs no replica any more: its outcome, or its return to the queue, is on its way to the store."""

    @property
    def waiting(self) -> bool:
        """Whether it is being drawn, or waits for a lane."""
        return not self.storing and not self.progress.in_flight
