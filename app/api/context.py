"""What the routes work with: the rooms that they may call, as one typed object."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from app.api.keys import Keys
from app.errors import Draining
from app.fleet import Fleet
from app.intake import Intake
from app.journal import Journal
from app.journal.blobs import Blobs
from app.rendering import Rendering
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    settings: Settings
    journal: Journal
    blobs: Blobs
    intake: Intake
    rendering: Rendering
    fleet: Fleet
    """Read only: routes look at lanes, they never choose one."""
    keys: Keys | None
    """None: nobody needs a key."""
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the gateway goes down: streams are cut, uploads refused."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the drain is over: nobody waits for a document's end any more."""

    def close(self) -> None:
        """Let those who wait for a document's end be answered with what it is now."""
        self.closing.set()
        self.journal.changes.hear_gap()

    def accepting(self) -> None:
        """Raises `Draining` when nothing new is taken."""
        if self.draining.is_set():
            raise Draining()


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


Ctx = Annotated[Context, Depends(_context)]
