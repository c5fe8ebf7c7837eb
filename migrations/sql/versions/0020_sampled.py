"""Nodes that runs drew for the audit sample; those of runs that stand already drew none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

SAMPLED = sa.text("sampled")


def upgrade() -> None:
    op.add_column(
        "prediction", sa.Column("sampled", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.create_index(
        "prediction_sampled",
        "prediction",
        ["project", "seq", "node_key"],
        sqlite_where=SAMPLED,
        postgresql_where=SAMPLED,
    )


def downgrade() -> None:
    op.drop_index("prediction_sampled", table_name="prediction")
    op.drop_column("prediction", "sampled")
