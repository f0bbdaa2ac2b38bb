"""Several gateways: who lives, whose claim it is, idempotency keys, claims by profile."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("pages", "claim_expires_at")
    _create_gateways()
    _create_idempotency_keys()
    claimed, claimable = sa.text("claim_owner IS NOT NULL"), sa.text("pages_queued > 0")
    op.create_index("ix_pages_claimed", "pages", ["claim_owner"], sqlite_where=claimed, postgresql_where=claimed)
    op.create_index(
        "ix_documents_claimable_by_profile",
        "documents",
        ["tenant", "profile", "pass", "id"],
        sqlite_where=claimable,
        postgresql_where=claimable,
    )


def downgrade() -> None:
    op.drop_index("ix_documents_claimable_by_profile", "documents")
    op.drop_index("ix_pages_claimed", "pages")
    op.drop_table("idempotency_keys")
    op.drop_table("gateways")
    op.add_column("pages", sa.Column("claim_expires_at", sa.BigInteger()))


def _create_gateways() -> None:
    op.create_table(
        "gateways",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("beat", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("wants", sa.JSON(), nullable=False),
        sa.Column("pages_per_second", sa.Float(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_gateways"),
    )


def _create_idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("owner", sa.String()),
        sa.Column("number", sa.Integer(), server_default="0", nullable=False),
        sa.Column("fingerprint", sa.String()),
        sa.Column("results", sa.JSON(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenants.name"], name="fk_idempotency_keys_tenant"),
        sa.PrimaryKeyConstraint("tenant", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_expiring", "idempotency_keys", ["expires_at"])
