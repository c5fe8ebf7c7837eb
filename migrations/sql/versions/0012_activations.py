"""Which model version is in use; models from before were in use from their training on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

IN_USE_SINCE_TRAINING = """
INSERT INTO activation (project, n, at_ns, version, was, how, reason, actor)
SELECT project,
       row_number() OVER (PARTITION BY project ORDER BY trained_ns, version),
       trained_ns,
       version,
       lag(version) OVER (PARTITION BY project ORDER BY trained_ns, version),
       'migrated',
       'in use when it was trained, before models had states',
       '{}'
FROM model
"""


def upgrade() -> None:
    op.create_table(
        "activation",
        sa.Column("project", sa.Text),
        sa.Column("n", sa.BigInteger),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("was", sa.Text),
        sa.Column("how", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "n"),
        sa.ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
    )
    op.execute(IN_USE_SINCE_TRAINING)


def downgrade() -> None:
    op.drop_table("activation")
