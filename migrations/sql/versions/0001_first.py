"""The first tables: lease, model, member, run, prediction, coverage, rescore, audit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TABLES = (
    "audit", "rescore", "quarantine", "coverage", "prediction", "run", "member", "model", "lease",
)  # fmt: skip


def _text(name: str, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _big(name: str, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _double(name: str, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=nullable)


def _flag(name: str, nullable: bool = False) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=nullable)


def upgrade() -> None:
    _control_tables()
    _run_tables()
    _audit_tables()
    _make_append_only(op.get_bind().dialect.name)


def _control_tables() -> None:
    op.create_table(
        "lease",
        _text("project"),
        _text("owner"),
        _big("token"),
        _big("expires_ns"),
        _big("watermark_ns", nullable=True),
        _big("next_seq"),
        sa.PrimaryKeyConstraint("project"),
    )
    op.create_table(
        "model",
        _text("project"),
        _text("version"),
        _big("trained_ns"),
        _text("manifest"),
        sa.PrimaryKeyConstraint("project", "version"),
    )
    op.create_table(
        "member",
        _text("project"),
        _text("version"),
        _text("node_key"),
        _text("role"),
        sa.Column("class_index", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("project", "version", "node_key"),
        sa.ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
        sa.CheckConstraint("role IN ('train', 'validation', 'calibration')", name="member_role"),
    )


def _run_tables() -> None:
    op.create_table(
        "run",
        _text("project"),
        _big("seq"),
        _text("state"),
        _big("token"),
        _big("started_ns"),
        _big("decided_ns", nullable=True),
        _big("applied_ns", nullable=True),
        _big("watermark_from_ns", nullable=True),
        _big("watermark_to_ns", nullable=True),
        _text("rule"),
        _text("score"),
        _double("alpha"),
        *(
            _double(name, nullable=True)
            for name in ("threshold", "threshold_node", "threshold_edge", "threshold_naive")
        ),
        _big("n_calibration"),
        _double("effective_calibration"),
        *(
            _big(name)
            for name in (
                "n_evaluated",
                "n_waiting",
                "n_already_known",
                "n_quarantined",
                "n_nodes",
                "n_relationships",
            )
        ),
        *(_text(name) for name in ("model", "config", "software", "notes", "timings")),
        sa.PrimaryKeyConstraint("project", "seq"),
        sa.CheckConstraint("state IN ('started', 'decided', 'applied')", name="run_state"),
    )
    op.create_table(
        "prediction",
        _text("project"),
        _text("node_key"),
        _big("seq"),
        sa.Column("size", sa.Integer, nullable=False),
        *(_text(name) for name in ("classes", "p_values", "scores")),
        _big("degree"),
        _flag("in_graph"),
        _text("label", nullable=True),
        _big("labelled_ns", nullable=True),
        _flag("covered", nullable=True),
        _flag("covered_naive", nullable=True),
        sa.PrimaryKeyConstraint("project", "node_key"),
        sa.ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    )
    op.create_index("prediction_by_run", "prediction", ["project", "seq"])
    op.create_index("prediction_unlabelled", "prediction", ["project", "labelled_ns"])


def _audit_tables() -> None:
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
    op.create_table(
        "quarantine",
        _text("project"),
        _text("element_id"),
        _text("node_key", nullable=True),
        _big("seq"),
        _text("reason"),
        _big("seen_ns"),
        sa.PrimaryKeyConstraint("project", "element_id"),
    )
    op.create_table(
        "rescore",
        _text("project"),
        _text("node_key"),
        _big("at_ns"),
        *(_text(name) for name in ("reason", "model")),
        _double("alpha"),
        *(_text(name) for name in ("classes", "p_values", "scores")),
        sa.PrimaryKeyConstraint("project", "node_key", "at_ns"),
    )
    op.create_table(
        "audit",
        _text("project"),
        _big("n"),
        *(_text(name) for name in ("body", "prev", "hash")),
        sa.PrimaryKeyConstraint("project", "n"),
    )


def _make_append_only(dialect: str) -> None:
    if dialect == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_no_{verb.lower()} BEFORE {verb} ON audit "
                "BEGIN SELECT RAISE(ABORT, 'the audit chain is append-only'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION ringfence_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the audit chain is append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION ringfence_append_only()"
    )


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION ringfence_append_only()")
