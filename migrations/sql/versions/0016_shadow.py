"""Sets of candidates beside those in force, and the runs that helped to choose a version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "shadow_run",
        sa.Column("project", sa.Text),
        sa.Column("version", sa.Text),
        sa.Column("seq", sa.BigInteger),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("score", sa.Text, nullable=False),
        sa.Column("alpha", sa.Double, nullable=False),
        sa.Column("promise", sa.Text, nullable=False),
        sa.Column("n_calibration", sa.BigInteger, nullable=False),
        sa.Column("n_sets", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.Text),
        sa.PrimaryKeyConstraint("project", "version", "seq"),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
        sa.ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
    )
    op.create_table(
        "shadow_set",
        sa.Column("project", sa.Text),
        sa.Column("version", sa.Text),
        sa.Column("node_key", sa.Text),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("classes", sa.Text, nullable=False),
        sa.Column("p_values", sa.Text, nullable=False),
        sa.Column("covered", sa.Boolean),
        sa.PrimaryKeyConstraint("project", "version", "node_key"),
        sa.ForeignKeyConstraint(
            ["project", "node_key"], ["prediction.project", "prediction.node_key"]
        ),
    )
    op.create_index("shadow_set_by_run", "shadow_set", ["project", "version", "seq"])
    op.create_index("shadow_set_by_node", "shadow_set", ["project", "node_key"])
    op.create_table(
        "shadow_coverage",
        sa.Column("project", sa.Text),
        sa.Column("version", sa.Text),
        sa.Column("seq", sa.BigInteger),
        sa.Column("audited_ns", sa.BigInteger, nullable=False),
        sa.Column("evaluated", sa.BigInteger, nullable=False),
        sa.Column("known", sa.BigInteger, nullable=False),
        sa.Column("covered", sa.BigInteger, nullable=False),
        sa.Column("active_covered", sa.BigInteger, nullable=False),
        sa.Column("both_covered", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("active_size", sa.BigInteger, nullable=False),
        sa.Column("size_difference_squared", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "version", "seq"),
    )
    op.create_table(
        "consulted",
        sa.Column("project", sa.Text),
        sa.Column("n", sa.BigInteger),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger),
        sa.Column("known", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "n", "seq"),
        sa.ForeignKeyConstraint(["project", "n"], ["activation.project", "activation.n"]),
    )
    op.create_index("consulted_by_version", "consulted", ["project", "version"])


def downgrade() -> None:
    op.drop_index("consulted_by_version", table_name="consulted")
    op.drop_table("consulted")
    op.drop_table("shadow_coverage")
    op.drop_index("shadow_set_by_node", table_name="shadow_set")
    op.drop_index("shadow_set_by_run", table_name="shadow_set")
    op.drop_table("shadow_set")
    op.drop_table("shadow_run")
