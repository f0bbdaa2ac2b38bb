"""An attempt: one try at one page on one lane."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from app.errors import AttemptError, AttemptStalled, AttemptTimeout
from app.fleet.client import Answer, complete
from app.fleet.lane import Lane
from app.fleet.view import LaneView


class Attempt:
    """Holds one slot of a lane from its making until `release`, which the end of its `with` block calls.

    ::

        with attempt:
            answer = await attempt.complete(body)
    """

    def __init__(self, lane: Lane) -> None:
        self.started_at = time.monotonic()
        self.due_at = self.started_at
        """When it should end, by what the lane's last pages took."""
        self.progress_at = math.inf
        """When the replica was last heard of; infinite while no answer is awaited."""
        self.model = lane.model or ""
        """What the replica calls its model."""
        self._lane = lane
        self._on_stall: Callable[[], None] | None = None
        self._stalled = False
        self._deadline: asyncio.Timeout | None = None
        self._ended_by: AttemptError | None = None
        self._outcome = "cancelled"
        self._released = False
        lane.acquire(self)

    @property
    def lane(self) -> LaneView:
        """The lane as it is now."""
        return self._lane.view()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Give the slot back; further calls do nothing."""
        if not self._released:
            self._released = True
            self._lane.release(self, self._outcome)

    async def complete(self, body: Sequence[bytes], on_stall: Callable[[], None] | None = None) -> Answer:
        """Have the page read. `body` is the JSON request in parts, sent one after another without joining them.

        With `on_stall` a stall does not end the attempt: its lane takes no pages until it has proved itself, `on_stall`
        is called, once, and the answer may still come.

        Raises an `AttemptError`: `LaneUnreachable`, `RankUnknown`, `LaneFull`, `AttemptAborted`, `LaneFault`,
        `AttemptTimeout`, `AttemptStalled` or `RequestRefused`. Cancelling it aborts the request at the replica.
        """
        self._on_stall = on_stall
        try:
            answer = await self._complete(body)
        except AttemptError as error:
            self._outcome = error.code()
            self._lane.failed(error)
            raise
        self._outcome = "succeeded"
        self._lane.succeeded(self.started_at, answer.seconds)
        return answer

    def fail(self, reason: str) -> None:
        """The answer is bad: its lane is to be chosen less for a while. `reason` is an error code."""
        self._outcome = reason
        self._lane.charge()

    def stall(self) -> None:
        """It was silent for too long while its engine did not work, or can't be seen to."""
        if self._stalled:
            return
        self._stalled = True
        if self._on_stall is None:
            self.end(AttemptStalled())
        else:
            self._lane.failed(AttemptStalled())
            self._on_stall()

    def end(self, error: AttemptError) -> None:
        """Make `complete` raise `error`, at once if it has not begun yet."""
        self._ended_by = error
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time())

    async def _complete(self, body: Sequence[bytes]) -> Answer:
        if self._ended_by is not None:
            raise self._ended_by
        self.started_at = self.progress_at = time.monotonic()
        try:
            async with asyncio.timeout(self._lane.page_seconds) as self._deadline:
                return await complete(self._lane.client, body, self._progress, self._lane.rank)
        except TimeoutError:
            raise self._ended_by or AttemptTimeout() from None
        finally:
            self._deadline = None
            self.progress_at = math.inf

    def _progress(self) -> None:
        self.progress_at = time.monotonic()
