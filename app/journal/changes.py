"""Wake-ups: what changed in the journal, told once it is durable, in this process and by a relay in others."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Watch:
    """Level-triggered: a change before the first `changed()`, or between two calls, is never lost."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def changed(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for a change since the last call; False if there was none."""
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def wake(self) -> None:
        self._event.set()


class Relay(Protocol):
    """Tells other gateways what changed; they call `Changes.hear_…`. Never blocks."""

    def tell_changed(self, document_id: str) -> None: ...

    def tell_cancelled(self, document_id: str) -> None: ...

    def tell_queued(self) -> None: ...


class Changes:
    """Who wants to know what. Everything is called in the event loop, after the transaction is durable."""

    def __init__(self) -> None:
        self._watches: defaultdict[str, set[Watch]] = defaultdict(set)
        self._on_queued: list[Callable[[], None]] = []
        self._on_cancelled: list[Callable[[str], None]] = []
        self._on_doubt: list[Callable[[], None]] = []
        self.relay: Relay | None = None

    @contextmanager
    def watch(self, document_id: str) -> Iterator[Watch]:
        """Watch a document: its events and its end, also by deletion. The id need not exist."""
        watch = Watch()
        self._watches[document_id].add(watch)
        try:
            yield watch
        finally:
            self._watches[document_id].discard(watch)
            if not self._watches[document_id]:
                del self._watches[document_id]

    @property
    def watched(self) -> list[str]:
        """Ids of the documents that are watched."""
        return list(self._watches)

    def on_queued(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever pages have become claimable."""
        self._on_queued.append(callback)

    def on_cancelled(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the id of a document that was cancelled, deleted or stopped by a page's error."""
        self._on_cancelled.append(callback)

    def on_doubt(self, callback: Callable[[], None]) -> None:
        """Call `callback` when claims of this gateway may have become void without a word: it was away for so long that
        others may have taken them over, or a cancel may have been missed.
        """
        self._on_doubt.append(callback)

    # told by transactions of this process

    def changed(self, document_id: str) -> None:
        self.hear_changed(document_id)
        if self.relay is not None:
            self.relay.tell_changed(document_id)

    def queued(self) -> None:
        self.hear_queued()
        if self.relay is not None:
            self.relay.tell_queued()

    def cancelled(self, document_id: str) -> None:
        self.hear_cancelled(document_id)
        if self.relay is not None:
            self.relay.tell_cancelled(document_id)

    # heard from others

    def hear_changed(self, document_id: str) -> None:
        for watch in self._watches.get(document_id, ()):
            watch.wake()

    def hear_queued(self) -> None:
        for callback in self._on_queued:
            callback()

    def hear_cancelled(self, document_id: str) -> None:
        for callback in self._on_cancelled:
            callback(document_id)

    def hear_gap(self) -> None:
        """Something may have been missed: wake everybody."""
        for document_id in self.watched:
            self.hear_changed(document_id)
        self.hear_queued()
        self.doubt()

    def doubt(self) -> None:
        for callback in self._on_doubt:
            callback()
