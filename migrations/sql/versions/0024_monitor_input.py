"""What each run fed its exchangeability monitor with, so that the monitor's state can be derived.

Runs that stand already have no row: their states stay as they are sealed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.create_table(
        "monitor_input",
        sa.Column("project", sa.Text),
        sa.Column("seq", sa.BigInteger),
        sa.Column("node_keys", sa.Text, nullable=False),
        sa.Column("p_values", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "seq"),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    )


def downgrade() -> None:
    op.drop_table("monitor_input")
