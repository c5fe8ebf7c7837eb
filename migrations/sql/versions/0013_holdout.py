"""Labelled nodes that a model version is compared on, and neither trained nor calibrated with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

CHECK = "member_role"
ROLES = "role IN ('train', 'validation', 'calibration', 'holdout')"
ROLES_BEFORE = "role IN ('train', 'validation', 'calibration')"
COLUMNS = "project, version, node_key, role, class_index, created_ns"
CORRECTION_COLUMNS = "project, version, node_key, noticed_ns, was, label, reason"


def upgrade() -> None:
    _allow(ROLES)


def downgrade() -> None:
    op.execute("DELETE FROM member WHERE role = 'holdout'")
    _allow(ROLES_BEFORE)


def _allow(roles: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        _rebuild(roles)
        return
    op.drop_constraint(CHECK, "member", type_="check")
    op.create_check_constraint(CHECK, "member", roles)


def _rebuild(roles: str) -> None:
    """Make the table anew: SQLite can't change a check.

    Rows of `correction` name rows of `member`, and wait in a table of their own meanwhile.
    """
    op.execute(f"CREATE TABLE correction_kept AS SELECT {CORRECTION_COLUMNS} FROM correction")
    op.execute("DELETE FROM correction")
    op.create_table(
        "member_anew",
        sa.Column("project", sa.Text),
        sa.Column("version", sa.Text),
        sa.Column("node_key", sa.Text),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("class_index", sa.Integer, nullable=False),
        sa.Column("created_ns", sa.BigInteger),
        sa.PrimaryKeyConstraint("project", "version", "node_key"),
        sa.ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
        sa.CheckConstraint(roles, name=CHECK),
    )
    op.execute(f"INSERT INTO member_anew ({COLUMNS}) SELECT {COLUMNS} FROM member")
    op.drop_table("member")
    op.rename_table("member_anew", "member")
    op.create_index("member_by_role", "member", ["project", "version", "role"])
    op.execute(
        f"INSERT INTO correction ({CORRECTION_COLUMNS}) "
        f"SELECT {CORRECTION_COLUMNS} FROM correction_kept"
    )
    op.drop_table("correction_kept")
