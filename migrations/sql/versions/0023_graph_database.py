"""Which graph database a project belongs to, as its server identifies it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_table(
        "graph_database",
        *(sa.Column(name, sa.Text, nullable=False) for name in ("project", "id", "name")),
        sa.PrimaryKeyConstraint("project"),
    )


def downgrade() -> None:
    op.drop_table("graph_database")
