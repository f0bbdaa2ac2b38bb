"""Documents that aren't there: never were, were deleted, or were erased when their time was over."""

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, select, true

from app.errors import Gone, NotFound
from app.journal.tables import tombstones

_DOCUMENT_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_document_id(text: str) -> bool:
    """Whether a document may have this id: PostgreSQL does not take every text to look for."""
    return _DOCUMENT_ID.fullmatch(text) is not None


def tombstone_of(document_id: str, tenant: str | None) -> Select[Any]:
    """None is any tenant."""
    owned = true() if tenant is None else tombstones.c.tenant == tenant
    return select(tombstones.c.document_id).where(tombstones.c.document_id == document_id, owned)


def absence(found: Sequence[Row[Any]]) -> Gone | NotFound:
    """What to say of a document that isn't there, by what `tombstone_of` found."""
    return Gone() if found else NotFound("there is no such document")
