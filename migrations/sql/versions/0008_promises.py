"""Promises of several kinds: thresholds per band and class, several alphas, levels that move.

Runs that were decided before keep what they promised: one alpha, one threshold, a frozen
calibration set. Their level is their alpha.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

COVERAGE_COLUMNS = (
    "project", "seq", "slice", "name", "model", "alpha", "audited_ns", "evaluated", "known",
    "covered", "covered_naive", "unseen", "coverage", "low", "high", "p_value", "anytime_low",
    "anytime_p", "mean_size", "mean_degree", "singletons", "singletons_known", "singleton_hits",
    "empty", "full", "bias", "bias_words", "exact", "raised_by", "verdict", "words",
)  # fmt: skip
TEXTS = {"project", "slice", "name", "model", "bias_words", "raised_by", "verdict", "words"}
WHOLE = {
    "seq", "audited_ns", "evaluated", "known", "covered", "covered_naive", "unseen", "singletons",
    "singletons_known", "singleton_hits", "empty", "full",
}  # fmt: skip
NULLABLE = {"coverage", "bias"}
TIMES = {
    "sqlite": "datetime({0} / 1000000000, 'unixepoch')",
    "postgresql": "to_timestamp({0} / 1000000000.0)",
}


def upgrade() -> None:
    _run_columns()
    op.add_column("prediction", sa.Column("band", sa.Text))
    _threshold()
    _further_set()
    _rebuild_coverage(("project", "seq", "slice", "name", "alpha"))
    flag = sa.Column("first_alpha", sa.Boolean, nullable=False, server_default=sa.text("true"))
    op.add_column("coverage", flag)
    _coverage_view("c.words, c.alpha, c.first_alpha")
    _threshold_view()


def _run_columns() -> None:
    for name in ("alphas", "levels", "shift"):
        op.add_column("run", sa.Column(name, sa.Text))
    for name in ("level", "lowest_level"):
        op.add_column("run", sa.Column(name, sa.Double))
    op.add_column("run", sa.Column("n_thresholds", sa.BigInteger))
    for name, default in (
        ("promise", "marginal"), ("calibration_set", "frozen"), ("weights", "none"),
    ):  # fmt: skip
        op.add_column("run", sa.Column(name, sa.Text, nullable=False, server_default=default))
    flag = sa.Column("adapt", sa.Boolean, nullable=False, server_default=sa.text("false"))
    op.add_column("run", flag)
    op.execute("UPDATE run SET level = alpha, n_thresholds = 1")


def _threshold() -> None:
    op.create_table(
        "threshold",
        sa.Column("project", sa.Text),
        sa.Column("seq", sa.BigInteger),
        sa.Column("alpha", sa.Double),
        sa.Column("band", sa.Text),
        sa.Column("class", sa.Text),
        sa.Column("level", sa.Double, nullable=False),
        sa.Column("threshold", sa.Double),
        sa.Column("n_calibration", sa.BigInteger, nullable=False),
        sa.Column("effective_calibration", sa.Double, nullable=False),
        sa.Column("n_evaluated", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "seq", "alpha", "band", "class"),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    )


def _further_set() -> None:
    op.create_table(
        "further_set",
        sa.Column("project", sa.Text),
        sa.Column("node_key", sa.Text),
        sa.Column("alpha", sa.Double),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("covered", sa.Boolean),
        sa.PrimaryKeyConstraint("project", "node_key", "alpha"),
        sa.ForeignKeyConstraint(
            ["project", "node_key"], ["prediction.project", "prediction.node_key"]
        ),
    )
    op.create_index("further_set_by_run", "further_set", ["project", "seq"])


def _rebuild_coverage(key: tuple[str, ...]) -> None:
    """Make the table anew with another primary key: SQLite can't change one."""
    op.execute("DROP VIEW ringfence_coverage")
    op.rename_table("coverage", "coverage_before")
    op.create_table(
        "coverage",
        *(_coverage_column(name) for name in COVERAGE_COLUMNS),
        sa.PrimaryKeyConstraint(*key, name="coverage_key"),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    )
    names = ", ".join(f'"{name}"' for name in COVERAGE_COLUMNS)
    op.execute(f"INSERT INTO coverage ({names}) SELECT {names} FROM coverage_before")
    op.drop_table("coverage_before")


def _coverage_column(name: str) -> sa.Column[object]:
    kind: type = sa.Double
    if name in TEXTS:
        kind = sa.Text
    elif name in WHOLE:
        kind = sa.BigInteger
    elif name == "exact":
        kind = sa.Boolean
    return sa.Column(name, kind, nullable=name in NULLABLE)


def _coverage_view(last_columns: str) -> None:
    time = TIMES[op.get_bind().dialect.name]
    decided, audited = time.format("r.decided_ns"), time.format("c.audited_ns")
    op.execute(
        f"CREATE VIEW ringfence_coverage AS SELECT c.project, c.seq, {decided} AS decided_at, "
        f"{audited} AS audited_at, c.slice, c.name, c.model, 1 - c.alpha AS promised, c.coverage, "
        "c.low, c.high, c.anytime_low, c.p_value, c.anytime_p, c.evaluated, c.known, c.covered, "
        "c.covered_naive, c.unseen, c.mean_size, c.mean_degree, c.singletons, "
        "c.singletons_known, c.singleton_hits, c.empty, c.full AS full_sets, c.bias, "
        f"c.verdict, c.raised_by, {last_columns} "
        "FROM coverage c JOIN run r ON r.project = c.project AND r.seq = c.seq"
    )


def _threshold_view() -> None:
    decided = TIMES[op.get_bind().dialect.name].format("r.decided_ns")
    op.execute(
        f"CREATE VIEW ringfence_threshold AS SELECT t.project, t.seq, {decided} AS decided_at, "
        't.alpha, t.band, t."class", t.level, t.threshold, t.n_calibration, '
        "t.effective_calibration, t.n_evaluated "
        "FROM threshold t JOIN run r ON r.project = t.project AND r.seq = t.seq"
    )


def downgrade() -> None:
    op.execute("DROP VIEW ringfence_threshold")
    op.execute(
        "DELETE FROM coverage WHERE alpha <> (SELECT r.alpha FROM run r "
        "WHERE r.project = coverage.project AND r.seq = coverage.seq)"
    )
    _rebuild_coverage(("project", "seq", "slice", "name"))
    _coverage_view("c.words")
    op.drop_table("further_set")
    op.drop_table("threshold")
    op.drop_column("prediction", "band")
    for name in (
        "adapt", "weights", "calibration_set", "promise", "n_thresholds", "lowest_level", "level",
        "shift", "levels", "alphas",
    ):  # fmt: skip
        op.drop_column("run", name)
