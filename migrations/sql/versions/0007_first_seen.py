"""When a run first saw a node, for graphs without creation times."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "first_seen",
        *(sa.Column(name, sa.Text, nullable=False) for name in ("project", "node_key")),
        sa.Column("seen_ns", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "node_key"),
    )


def downgrade() -> None:
    op.drop_table("first_seen")
