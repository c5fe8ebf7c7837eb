"""What an audit keeps: classes with their times, groups, richer coverage, alarms, SQL views."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

VIEWS = ("ringfence_run", "ringfence_coverage", "ringfence_class", "ringfence_alarm")


def _text(name: str, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _big(name: str, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _double(name: str, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=nullable)


def _flag(name: str, nullable: bool = False) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=nullable)


def upgrade() -> None:
    op.add_column("run", _text("calibration_scores", nullable=True))
    op.add_column("run", _text("watch", nullable=True))
    op.add_column("prediction", _flag("unseen", nullable=True))
    op.add_column("prediction", _double("top_p", nullable=True))
    op.drop_table("coverage")  # counted anew by the next audit
    _class_tables()
    _coverage()
    _alarm_tables()
    _views(op.get_bind().dialect.name)


def _class_tables() -> None:
    of_prediction = ["prediction.project", "prediction.node_key"]
    op.create_table(
        "label",
        _text("project"),
        _text("node_key"),
        _big("noticed_ns"),
        _text("label"),
        _big("happened_ns", nullable=True),
        *(_flag(name) for name in ("covered", "covered_naive", "unseen")),
        sa.PrimaryKeyConstraint("project", "node_key", "noticed_ns"),
        sa.ForeignKeyConstraint(["project", "node_key"], of_prediction),
    )
    op.create_index("label_by_time", "label", ["project", "noticed_ns"])
    op.create_table(
        "grouping",
        *(_text(name) for name in ("project", "node_key", "property", "value")),
        sa.PrimaryKeyConstraint("project", "node_key", "property"),
        sa.ForeignKeyConstraint(["project", "node_key"], of_prediction),
    )
    op.create_table(
        "audit_mark",
        _text("project"),
        _big("audited_ns"),
        _big("labels_ns", nullable=True),
        _big("grouped_seq"),
        _text("advice", nullable=True),
        sa.PrimaryKeyConstraint("project"),
    )


def _coverage() -> None:
    counts = ("evaluated", "known", "covered", "covered_naive", "unseen")
    rates = ("low", "high", "p_value", "anytime_low", "anytime_p", "mean_size", "mean_degree")
    sets = ("singletons", "singletons_known", "singleton_hits", "empty", "full")
    op.create_table(
        "coverage",
        _text("project"),
        _big("seq"),
        *(_text(name) for name in ("slice", "name", "model")),
        _double("alpha"),
        _big("audited_ns"),
        *(_big(name) for name in counts),
        _double("coverage", nullable=True),
        *(_double(name) for name in rates),
        *(_big(name) for name in sets),
        _double("bias", nullable=True),
        _text("bias_words"),
        _flag("exact"),
        *(_text(name) for name in ("raised_by", "verdict", "words")),
        sa.PrimaryKeyConstraint("project", "seq", "slice", "name"),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    )


def _alarm_tables() -> None:
    op.create_table(
        "alarm",
        *(_text(name) for name in ("project", "rule", "state")),
        _big("since_ns"),
        _big("checked_ns"),
        _text("words"),
        sa.PrimaryKeyConstraint("project", "rule"),
        sa.CheckConstraint("state IN ('ok', 'pending', 'firing', 'no data')", name="alarm_state"),
    )
    op.create_table(
        "alarm_event",
        _text("project"),
        _big("n"),
        _big("at_ns"),
        *(_text(name) for name in ("rule", "was", "state", "words", "delivered")),
        sa.PrimaryKeyConstraint("project", "n"),
    )


def _views(dialect: str) -> None:
    """Views with times that Grafana understands; the tables keep nanoseconds."""
    time = {
        "sqlite": "datetime({0} / 1000000000, 'unixepoch')",
        "postgresql": "to_timestamp({0} / 1000000000.0)",
    }[dialect]
    decided, audited = time.format("r.decided_ns"), time.format("c.audited_ns")
    op.execute(
        f"CREATE VIEW ringfence_run AS SELECT r.project, r.seq, {decided} AS decided_at, r.state, "
        "r.rule, r.alpha, r.threshold, r.threshold_node, r.threshold_edge, r.threshold_naive, "
        "r.n_calibration, r.n_evaluated, r.n_waiting, r.n_quarantined, r.n_nodes, "
        "r.n_relationships, r.model FROM run r"
    )
    op.execute(
        f"CREATE VIEW ringfence_coverage AS SELECT c.project, c.seq, {decided} AS decided_at, "
        f"{audited} AS audited_at, c.slice, c.name, c.model, 1 - c.alpha AS promised, c.coverage, "
        "c.low, c.high, c.anytime_low, c.p_value, c.anytime_p, c.evaluated, c.known, c.covered, "
        "c.covered_naive, c.unseen, c.mean_size, c.mean_degree, c.singletons, "
        "c.singletons_known, c.singleton_hits, c.empty, c.full AS full_sets, c.bias, "
        "c.verdict, c.raised_by, c.words "
        "FROM coverage c JOIN run r ON r.project = c.project AND r.seq = c.seq"
    )
    op.execute(
        "CREATE VIEW ringfence_class AS SELECT l.project, l.node_key, p.seq, l.label AS class, "
        f"{time.format('l.noticed_ns')} AS noticed_at, {time.format('l.happened_ns')} AS "
        "happened_at, l.covered, l.covered_naive, l.unseen FROM label l "
        "JOIN prediction p ON p.project = l.project AND p.node_key = l.node_key"
    )
    op.execute(
        f"CREATE VIEW ringfence_alarm AS SELECT a.project, a.n, {time.format('a.at_ns')} AS at, "
        "a.rule, a.was, a.state, a.words, a.delivered FROM alarm_event a"
    )


def downgrade() -> None:
    for view in VIEWS:
        op.execute(f"DROP VIEW {view}")
    for table in ("alarm_event", "alarm", "coverage", "audit_mark", "grouping", "label"):
        op.drop_table(table)
    for table, column in (
        ("prediction", "top_p"),
        ("prediction", "unseen"),
        ("run", "watch"),
        ("run", "calibration_scores"),
    ):
        op.drop_column(table, column)
    op.create_table(
        "coverage",
        _text("project"),
        _big("seq"),
        _text("slice"),
        *(_big(name) for name in ("audited_ns", "evaluated", "known", "covered", "covered_naive")),
        *(_double(name) for name in ("low", "high", "p_value", "mean_size")),
        _flag("exact"),
        _text("verdict"),
        _text("words"),
        sa.PrimaryKeyConstraint("project", "seq", "slice"),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    )
