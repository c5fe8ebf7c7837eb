"""Corrected classes of calibration nodes; members' creation times; relationships in quarantine."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("member", sa.Column("created_ns", sa.BigInteger))
    op.add_column("quarantine", sa.Column("kind", sa.Text, nullable=False, server_default="node"))
    op.create_table(
        "correction",
        sa.Column("project", sa.Text, primary_key=True),
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("node_key", sa.Text, primary_key=True),
        sa.Column("noticed_ns", sa.BigInteger, primary_key=True),
        sa.Column("was", sa.Text),
        sa.Column("label", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["project", "version", "node_key"],
            ["member.project", "member.version", "member.node_key"],
        ),
    )


def downgrade() -> None:
    op.drop_table("correction")
    op.drop_column("quarantine", "kind")
    op.drop_column("member", "created_ns")
