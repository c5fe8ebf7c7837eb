"""Evaluated nodes that calibrate later runs once their class is known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "joined",
        sa.Column("project", sa.Text),
        sa.Column("version", sa.Text),
        sa.Column("node_key", sa.Text),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("evaluated_seq", sa.BigInteger, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "version", "node_key"),
        sa.ForeignKeyConstraint(
            ["project", "node_key"], ["prediction.project", "prediction.node_key"]
        ),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    )
    op.create_index("joined_by_run", "joined", ["project", "seq"])


def downgrade() -> None:
    op.drop_index("joined_by_run", table_name="joined")
    op.drop_table("joined")
