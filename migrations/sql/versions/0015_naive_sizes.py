"""Mean size of the naive sets, without which their coverage says nothing; runs found by their time.

Runs that stand already have none on record.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

TIMES = {
    "sqlite": "datetime({0} / 1000000000, 'unixepoch')",
    "postgresql": "to_timestamp({0} / 1000000000.0)",
}


def upgrade() -> None:
    op.add_column("run", sa.Column("mean_size_naive", sa.Double))
    op.add_column("coverage", sa.Column("mean_size_naive", sa.Double))
    op.create_index("run_by_time", "run", ["project", "decided_ns", "seq"])
    _coverage_view("c.words, c.alpha, c.first_alpha, c.own_promise, c.mean_size_naive")


def downgrade() -> None:
    _coverage_view("c.words, c.alpha, c.first_alpha, c.own_promise")
    op.drop_index("run_by_time", "run")
    op.drop_column("coverage", "mean_size_naive")
    op.drop_column("run", "mean_size_naive")


def _coverage_view(last_columns: str) -> None:
    time = TIMES[op.get_bind().dialect.name]
    decided, audited = time.format("r.decided_ns"), time.format("c.audited_ns")
    op.execute("DROP VIEW ringfence_coverage")
    op.execute(
        f"CREATE VIEW ringfence_coverage AS SELECT c.project, c.seq, {decided} AS decided_at, "
        f"{audited} AS audited_at, c.slice, c.name, c.model, 1 - c.alpha AS promised, c.coverage, "
        "c.low, c.high, c.anytime_low, c.p_value, c.anytime_p, c.evaluated, c.known, c.covered, "
        "c.covered_naive, c.unseen, c.mean_size, c.mean_degree, c.singletons, "
        "c.singletons_known, c.singleton_hits, c.empty, c.full AS full_sets, c.bias, "
        f"c.verdict, c.raised_by, {last_columns} "
        "FROM coverage c JOIN run r ON r.project = c.project AND r.seq = c.seq"
    )
