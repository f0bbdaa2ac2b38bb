"""`Prefer: wait=N` (RFC 7240): hold the answer until the document has ended."""

import re
import time

from app.api.context import Context
from app.api.event_stream import STORE_RETRY_SECONDS
from app.documents.records import Document
from app.errors import StoreUnavailable

_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,9})\"?(?=$|[,;\s])", re.ASCII | re.IGNORECASE)


def preferred_wait(prefer: str | None, max_seconds: float) -> float | None:
    """Seconds that the client would wait, at most `max_seconds`; None if it doesn't say."""
    match = _WAIT.search(prefer or "")
    return None if match is None else min(float(match[1]), max_seconds)


def applied(wait: float | None) -> dict[str, str]:
    """Header that tells the client that its preference was honoured."""
    return {} if wait is None else {"Preference-Applied": f"wait={wait:g}"}


async def wait_for_end(ctx: Context, document: Document, seconds: float | None) -> Document:
    """The document once it has ended, or as it is after `seconds` or when the gateway closes.

    A store that is away is waited for too. Raises `StoreUnavailable` if it is still away at the end, and `NotFound` if
    the document is deleted meanwhile.
    """
    if seconds is None or document.state.ended:
        return document
    deadline = time.monotonic() + seconds
    with ctx.journal.changes.watch(document.id) as watch:
        while True:
            patience = left = 0 if ctx.closing.is_set() else deadline - time.monotonic()
            try:
                document = await ctx.journal.document(document.id)
            except StoreUnavailable:
                if left <= 0:
                    raise
                patience = min(left, STORE_RETRY_SECONDS)
            else:
                if document.state.ended or left <= 0:
                    return document
            await watch.changed(patience)
