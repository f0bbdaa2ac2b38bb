"""The tables of the journal, the same on SQLite and PostgreSQL.

    tenants ──< documents ──< pages
                         └──< events
        └──< tombstones
        └──< idempotency_keys
    gateways

Locks are taken in this order everywhere: tenant, document, pages by number.
"""

from datetime import UTC, datetime, timedelta

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    FromClause,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    literal,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from app.documents.states import DocumentState, PageState

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UtcMicroseconds(TypeDecorator[datetime]):
    """A moment in UTC as whole microseconds since 1970.

    An integer is exact, ordered and the same in both databases; SQLite's own times are text without a zone.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else (value - EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else EPOCH + value * _MICROSECOND


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default="0")


metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

tenants = Table(
    "tenants",
    metadata,
    Column("name", String, primary_key=True),
    Column("pass", BigInteger, nullable=False, server_default="0", key="pass_"),
    # Largest pass that a document of the tenant has had: where its virtual time stands while nothing is queued.
    Column("last_document_pass", BigInteger, nullable=False, server_default="0"),
    _count("pages_queued"),
)

documents = Table(
    "documents",
    metadata,
    Column("id", String, primary_key=True),
    Column("tenant", ForeignKey("tenants.name"), nullable=False),
    Column("state", String, nullable=False, server_default=DocumentState.QUEUED),
    Column("filename", String, nullable=False),
    Column("media_type", String, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", String, nullable=False),
    Column("blob_key", String, nullable=False),
    Column("password", String),
    Column("profile", String),
    Column("priority", Integer, nullable=False),
    Column("on_page_error", String, nullable=False, server_default="keep"),
    Column("text_layer", String, nullable=False, server_default="ignore"),
    Column("ttl_seconds", Integer, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("warnings", JSON, nullable=False),
    Column("error", JSON(none_as_null=True)),
    Column("pass", BigInteger, nullable=False, server_default="0", key="pass_"),
    _count("pages_total"),
    _count("pages_queued"),
    _count("pages_running"),
    _count("pages_succeeded"),
    _count("pages_failed"),
    _count("pages_cancelled"),
    _count("seq"),
    _count("retries"),
    Column("created_at", UtcMicroseconds, nullable=False),
    Column("started_at", UtcMicroseconds),
    Column("ended_at", UtcMicroseconds),
    Column("expires_at", UtcMicroseconds),
)

pages = Table(
    "pages",
    metadata,
    Column("document_id", ForeignKey("documents.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("state", String, nullable=False, server_default=PageState.QUEUED),
    Column("queued_at", UtcMicroseconds, nullable=False),
    Column("not_before", UtcMicroseconds, nullable=False, server_default="0"),
    _count("claim_number"),
    Column("claim_owner", String),  # a gateway; the claim is void once the gateway has no row
    _count("attempts"),
    _count("lane_deaths"),
    Column("source", String),
    Column("text", Text, nullable=False, server_default=""),
    Column("profile", String),
    Column("model", String),
    Column("lane", String),
    Column("wait_seconds", Float, nullable=False, server_default="0"),
    Column("render_seconds", Float, nullable=False, server_default="0"),
    Column("service_seconds", Float, nullable=False, server_default="0"),
    Column("width_points", Float),
    Column("height_points", Float),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("confidence", Float),
    Column("warnings", JSON(none_as_null=True)),
    Column("error", JSON(none_as_null=True)),
    Column("seq", Integer),  # of the event that tells of the page's end
    Column("ended_at", UtcMicroseconds),
)

events = Table(
    "events",
    metadata,
    Column("document_id", ForeignKey("documents.id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("page", Integer),
)

# Of documents that were erased when their time was over; nothing but their id is kept.
tombstones = Table(
    "tombstones",
    metadata,
    Column("document_id", String, primary_key=True),
    Column("tenant", ForeignKey("tenants.name"), nullable=False),
    Column("expires_at", UtcMicroseconds, nullable=False),
)

# What a POST with an `Idempotency-Key` made, or, with an owner, is making.
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("tenant", ForeignKey("tenants.name"), primary_key=True),
    Column("key", String, primary_key=True),
    # Like a claim, a reservation is void once its owner has no row in `gateways`; null: answered.
    Column("owner", String),
    _count("number"),
    Column("fingerprint", String),
    Column("results", JSON, nullable=False),
    Column("expires_at", UtcMicroseconds, nullable=False),
)

# Gateways that live, as far as the others know: each counts its `beat` up, and one that stands still is dead. Clocks,
# which jump and differ, say nothing here.
gateways = Table(
    "gateways",
    metadata,
    Column("id", String, primary_key=True),
    Column("beat", BigInteger, nullable=False, server_default="0"),
    Column("wants", JSON, nullable=False),
    Column("pages_per_second", Float, nullable=False, server_default="0"),
)

# A partial index serves only queries that repeat its condition literally: hence no bound parameters here.
TENANT_HAS_QUEUED = tenants.c.pages_queued > literal(0, literal_execute=True)
DOCUMENT_HAS_QUEUED = documents.c.pages_queued > literal(0, literal_execute=True)


IS_CLAIMED = pages.c.claim_owner.is_not(None)


def is_queued(table: FromClause) -> ColumnElement[bool]:
    """Condition on `pages` or an alias of it."""
    return table.c.state == literal(PageState.QUEUED.value, literal_execute=True)


Index(
    "ix_tenants_claimable",
    tenants.c.pass_,
    tenants.c.name,
    sqlite_where=TENANT_HAS_QUEUED,
    postgresql_where=TENANT_HAS_QUEUED,
)
Index(
    "ix_documents_claimable",
    documents.c.tenant,
    documents.c.pass_,
    documents.c.id,
    sqlite_where=DOCUMENT_HAS_QUEUED,
    postgresql_where=DOCUMENT_HAS_QUEUED,
)
Index(
    "ix_documents_claimable_by_profile",
    documents.c.tenant,
    documents.c.profile,
    documents.c.pass_,
    documents.c.id,
    sqlite_where=DOCUMENT_HAS_QUEUED,
    postgresql_where=DOCUMENT_HAS_QUEUED,
)
Index(
    "ix_pages_claimable",
    pages.c.document_id,
    pages.c.number,
    sqlite_where=is_queued(pages),
    postgresql_where=is_queued(pages),
)
Index("ix_pages_claimed", pages.c.claim_owner, sqlite_where=IS_CLAIMED, postgresql_where=IS_CLAIMED)
# Ids are UUIDv7: newest first is the largest id first.
Index("ix_documents_listed", documents.c.tenant, documents.c.id)
Index("ix_documents_listed_by_state", documents.c.tenant, documents.c.state, documents.c.id)
Index("ix_documents_expiring", documents.c.expires_at)
Index("ix_tombstones_expiring", tombstones.c.expires_at)
Index("ix_idempotency_keys_expiring", idempotency_keys.c.expires_at)
