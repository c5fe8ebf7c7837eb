"""The tables of nodes that count since a run; `tables` has all the others, and offers them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from ringfence.connector.store.thresholds.tables import metadata

joined = Table(
    "joined",
    metadata,
    Column("project", Text),
    Column("version", Text),
    Column("node_key", Text),
    Column("seq", BigInteger, nullable=False),
    Column("evaluated_seq", BigInteger, nullable=False),
    Column("label", Text, nullable=False),
    PrimaryKeyConstraint("project", "version", "node_key"),
    ForeignKeyConstraint(["project", "node_key"], ["prediction.project", "prediction.node_key"]),
    ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    Index("joined_by_run", "project", "seq"),
)
"""Evaluated nodes whose class counts since run `seq`, for an adaptive level and, where calibration
lives, as calibration nodes. `label` is what they joined with; the prediction has the newest."""

monitor_input = Table(
    "monitor_input",
    metadata,
    Column("project", Text),
    Column("seq", BigInteger),
    Column("node_keys", Text, nullable=False),
    Column("p_values", Text, nullable=False),
    PrimaryKeyConstraint("project", "seq"),
    ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
)
"""The smoothed p-values that run `seq` fed its exchangeability monitor with, and of which nodes, in
order; both as JSON lists. A run to which no class was new has no row."""
