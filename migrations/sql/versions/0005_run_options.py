"""Options of a run: the settings beside rule, score and alpha that shaped its sets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("run", sa.Column("options", sa.Text, nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("run", "options")
