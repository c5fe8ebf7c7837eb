"""An index of the predictions whose class is known: a run counts them, whatever the others are."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0019"
down_revision = "0018"

KNOWN = text("label IS NOT NULL")


def upgrade() -> None:
    op.create_index(
        "prediction_known",
        "prediction",
        ["project", "seq", "label", "labelled_ns", "node_key"],
        sqlite_where=KNOWN,
        postgresql_where=KNOWN,
    )


def downgrade() -> None:
    op.drop_index("prediction_known", table_name="prediction")
