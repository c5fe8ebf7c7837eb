"""Runs whose details were removed because they are older than `[audit] keep_days`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "removal",
        sa.Column("project", sa.Text),
        sa.Column("seq", sa.BigInteger),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("keep_days", sa.Double, nullable=False),
        sa.Column("nodes", sa.BigInteger, nullable=False),
        sa.Column("entries", sa.BigInteger, nullable=False),
        sa.Column("shadow_sets", sa.BigInteger, nullable=False),
        sa.Column("freed", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "seq"),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    )


def downgrade() -> None:
    op.drop_table("removal")
