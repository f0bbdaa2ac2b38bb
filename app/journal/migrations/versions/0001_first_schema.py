"""The first schema: tenants, documents, pages, events and tombstones."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_tenants()
    _create_documents()
    _create_pages()
    _create_events()
    _create_tombstones()


def downgrade() -> None:
    for table in ("tombstones", "events", "pages", "documents", "tenants"):
        op.drop_table(table)


def _create_tenants() -> None:
    op.create_table(
        "tenants",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("pass", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_document_pass", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("pages_queued", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_tenants"),
    )
    op.create_index(
        "ix_tenants_claimable",
        "tenants",
        ["pass", "name"],
        sqlite_where=sa.text("pages_queued > 0"),
        postgresql_where=sa.text("pages_queued > 0"),
    )


def _create_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("state", sa.String(), server_default="queued", nullable=False),
        sa.Column("filename", sa.String(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("blob_key", sa.String(), nullable=False),
        sa.Column("password", sa.String()),
        sa.Column("profile", sa.String()),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("on_page_error", sa.String(), server_default="keep", nullable=False),
        sa.Column("text_layer", sa.String(), server_default="ignore", nullable=False),
        sa.Column("ttl_seconds", sa.Integer(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("error", sa.JSON(none_as_null=True)),
        sa.Column("pass", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("pages_total", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pages_queued", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pages_running", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pages_succeeded", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pages_failed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pages_cancelled", sa.Integer(), server_default="0", nullable=False),
        sa.Column("seq", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("expires_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["tenant"], ["tenants.name"], name="fk_documents_tenant"),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
    )
    op.create_index(
        "ix_documents_claimable",
        "documents",
        ["tenant", "pass", "id"],
        sqlite_where=sa.text("pages_queued > 0"),
        postgresql_where=sa.text("pages_queued > 0"),
    )
    op.create_index("ix_documents_expiring", "documents", ["expires_at"])
    op.create_index("ix_documents_listed", "documents", ["tenant", "id"])
    op.create_index("ix_documents_listed_by_state", "documents", ["tenant", "state", "id"])


def _create_pages() -> None:
    op.create_table(
        "pages",
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(), server_default="queued", nullable=False),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("claim_number", sa.Integer(), server_default="0", nullable=False),
        sa.Column("claim_owner", sa.String()),
        sa.Column("claim_expires_at", sa.BigInteger()),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lane_deaths", sa.Integer(), server_default="0", nullable=False),
        sa.Column("source", sa.String()),
        sa.Column("text", sa.Text(), server_default="", nullable=False),
        sa.Column("profile", sa.String()),
        sa.Column("model", sa.String()),
        sa.Column("lane", sa.String()),
        sa.Column("wait_seconds", sa.Float(), server_default="0", nullable=False),
        sa.Column("render_seconds", sa.Float(), server_default="0", nullable=False),
        sa.Column("service_seconds", sa.Float(), server_default="0", nullable=False),
        sa.Column("width_points", sa.Float()),
        sa.Column("height_points", sa.Float()),
        sa.Column("prompt_tokens", sa.Integer()),
        sa.Column("completion_tokens", sa.Integer()),
        sa.Column("confidence", sa.Float()),
        sa.Column("warnings", sa.JSON(none_as_null=True)),
        sa.Column("error", sa.JSON(none_as_null=True)),
        sa.Column("seq", sa.Integer()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["document_id"], ["documents.id"], name="fk_pages_document_id"),
        sa.PrimaryKeyConstraint("document_id", "number", name="pk_pages"),
    )
    op.create_index(
        "ix_pages_claimable",
        "pages",
        ["document_id", "number"],
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("page", sa.Integer()),
        sa.ForeignKeyConstraint(["document_id"], ["documents.id"], name="fk_events_document_id"),
        sa.PrimaryKeyConstraint("document_id", "seq", name="pk_events"),
    )


def _create_tombstones() -> None:
    op.create_table(
        "tombstones",
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenants.name"], name="fk_tombstones_tenant"),
        sa.PrimaryKeyConstraint("document_id", name="pk_tombstones"),
    )
    op.create_index("ix_tombstones_expiring", "tombstones", ["expires_at"])
