"""What came out of the work on a node; marks that stand already are done without an outcome."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

COLUMNS = ("outcome", "about", "assignee")
TIMES = {
    "sqlite": "datetime({0} / 1000000000, 'unixepoch')",
    "postgresql": "to_timestamp({0} / 1000000000.0)",
}


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("mark", sa.Column(name, sa.Text))
    at = TIMES[op.get_bind().dialect.name].format("m.at_ns")
    op.execute(
        f"CREATE VIEW ringfence_outcome AS SELECT m.project, m.n, m.node_key, p.seq, {at} AS at, "
        "m.who, m.outcome, m.about, m.note, p.label AS class, p.lists, p.sampled, p.in_graph "
        "FROM mark m JOIN prediction p ON p.project = m.project AND p.node_key = m.node_key "
        "WHERE m.action = 'done' AND NOT EXISTS (SELECT 1 FROM mark l WHERE l.project = m.project "
        "AND l.node_key = m.node_key AND l.n > m.n AND l.action <> 'note')"
    )


def downgrade() -> None:
    op.execute("DROP VIEW ringfence_outcome")
    for name in COLUMNS:
        op.drop_column("mark", name)
