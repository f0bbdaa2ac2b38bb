"""`Prefer: wait=N` (RFC 7240): hold the answer until the document has ended."""

import re
import time

from app.documents.records import Document
from app.journal import Journal

_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,9})\"?(?=$|[,;\s])", re.ASCII | re.IGNORECASE)


def preferred_wait(prefer: str | None, max_seconds: float) -> float | None:
    """Seconds that the client would wait, at most `max_seconds`; None if it doesn't say."""
    match = _WAIT.search(prefer or "")
    return None if match is None else min(float(match[1]), max_seconds)


def applied(wait: float | None) -> dict[str, str]:
    """Header that tells the client that its preference was honoured."""
    return {} if wait is None else {"Preference-Applied": f"wait={wait:g}"}


async def wait_for_end(journal: Journal, document: Document, seconds: float | None) -> Document:
    """The document once it has ended, or as it is after `seconds`. Raises `NotFound` if it is deleted meanwhile."""
    if seconds is None or document.state.ended:
        return document
    deadline = time.monotonic() + seconds
    with journal.changes.watch(document.id) as watch:
        document = await journal.document(document.id)
        while not document.state.ended and (left := deadline - time.monotonic()) > 0:
            await watch.changed(left)
            document = await journal.document(document.id)
    return document
