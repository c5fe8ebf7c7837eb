"""Members by role: a run asks for the calibration nodes alone, however many others there are."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_index("member_by_role", "member", ["project", "version", "role"])


def downgrade() -> None:
    op.drop_index("member_by_role", table_name="member")
