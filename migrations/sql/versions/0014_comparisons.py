"""Comparisons of model versions on the holdout."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "comparison",
        sa.Column("project", sa.Text),
        sa.Column("n", sa.BigInteger),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("against", sa.Text),
        sa.Column("result", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "n"),
        sa.ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
        sa.ForeignKeyConstraint(["project", "against"], ["model.project", "model.version"]),
    )


def downgrade() -> None:
    op.drop_table("comparison")
