"""Lists with a promised share of wrong nodes; runs that stand already decided none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

LISTED = sa.text("lists IS NOT NULL")


def upgrade() -> None:
    op.add_column("run", sa.Column("lists", sa.Text))
    op.add_column("prediction", sa.Column("lists", sa.Text))
    op.create_index(
        "prediction_listed",
        "prediction",
        ["project", "seq", "node_key"],
        sqlite_where=LISTED,
        postgresql_where=LISTED,
    )


def downgrade() -> None:
    op.drop_index("prediction_listed", table_name="prediction")
    op.drop_column("prediction", "lists")
    op.drop_column("run", "lists")
