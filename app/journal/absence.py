"""Documents that aren't there: never were, were deleted, or were erased when their time was over."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, select, true

from app.errors import Gone, NotFound
from app.journal.tables import tombstones


def tombstone_of(document_id: str, tenant: str | None) -> Select[Any]:
    """None is any tenant."""
    owned = true() if tenant is None else tombstones.c.tenant == tenant
    return select(tombstones.c.document_id).where(tombstones.c.document_id == document_id, owned)


def absence(found: Sequence[Row[Any]]) -> Gone | NotFound:
    """What to say of a document that isn't there, by what `tombstone_of` found."""
    return Gone() if found else NotFound("there is no such document")
