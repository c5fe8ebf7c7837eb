"""The salt that node keys are hashed with in audit packs that do not name nodes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.create_table(
        "key_salt",
        sa.Column("project", sa.Text, primary_key=True),
        sa.Column("salt", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("key_salt")
