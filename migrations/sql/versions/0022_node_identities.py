"""Which node a prediction is of: creation time and a digest of what was read, beside its key.

Predictions that stand already have neither: they count as those of the nodes that have their keys.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.add_column("prediction", sa.Column("created_ns", sa.BigInteger))
    op.add_column("prediction", sa.Column("evidence", sa.Text))


def downgrade() -> None:
    op.drop_column("prediction", "evidence")
    op.drop_column("prediction", "created_ns")
