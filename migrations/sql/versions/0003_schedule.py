"""The schedule: when each job of a project is due, who runs it, how its last run ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "schedule",
        *(sa.Column(name, sa.Text, nullable=False) for name in ("project", "job")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("trigger", "timezone")),
        sa.Column("due_ns", sa.BigInteger),
        sa.Column("owner", sa.Text),
        sa.Column("claimed_until_ns", sa.BigInteger),
        sa.Column("started_ns", sa.BigInteger),
        sa.Column("ended_ns", sa.BigInteger),
        sa.Column("outcome", sa.Text),
        sa.Column("words", sa.Text),
        sa.Column("failures", sa.BigInteger, nullable=False),
        sa.Column("failed_ns", sa.BigInteger),
        sa.Column("failed_words", sa.Text),
        sa.PrimaryKeyConstraint("project", "job"),
    )


def downgrade() -> None:
    op.drop_table("schedule")
