"""The index of a run's predictions has their keys: a run is read in blocks, in their order."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.drop_index("prediction_by_run", table_name="prediction")
    op.create_index("prediction_by_run", "prediction", ["project", "seq", "node_key"])


def downgrade() -> None:
    op.drop_index("prediction_by_run", table_name="prediction")
    op.create_index("prediction_by_run", "prediction", ["project", "seq"])
