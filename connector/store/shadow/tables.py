"""Tables of shadow sets; `tables` has all the others, and offers these too."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from ringfence.connector.store.thresholds.tables import metadata

shadow_run = Table(
    "shadow_run",
    metadata,
    Column("project", Text),
    Column("version", Text),
    Column("seq", BigInteger),
    Column("at_ns", BigInteger, nullable=False),
    Column("rule", Text, nullable=False),
    Column("score", Text, nullable=False),
    Column("alpha", Double, nullable=False),
    Column("promise", Text, nullable=False),
    Column("n_calibration", BigInteger, nullable=False),
    Column("n_sets", BigInteger, nullable=False),
    Column("failed", Text),
    PrimaryKeyConstraint("project", "version", "seq"),
    ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
    ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
)
"""A candidate's part in a run: how its sets were made, or why there are none (`failed`)."""

shadow_set = Table(
    "shadow_set",
    metadata,
    Column("project", Text),
    Column("version", Text),
    Column("node_key", Text),
    Column("seq", BigInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("classes", Text, nullable=False),
    Column("p_values", Text, nullable=False),
    Column("covered", Boolean),
    PrimaryKeyConstraint("project", "version", "node_key"),
    ForeignKeyConstraint(["project", "node_key"], ["prediction.project", "prediction.node_key"]),
    Index("shadow_set_by_run", "project", "version", "seq"),
    Index("shadow_set_by_node", "project", "node_key"),
)
"""The set that a candidate would have given a node; never in the graph, without a guarantee.

`covered` says whether it holds the newest class that became known."""

shadow_coverage = Table(
    "shadow_coverage",
    metadata,
    Column("project", Text),
    Column("version", Text),
    Column("seq", BigInteger),
    Column("audited_ns", BigInteger, nullable=False),
    Column("evaluated", BigInteger, nullable=False),
    Column("known", BigInteger, nullable=False),
    Column("covered", BigInteger, nullable=False),
    Column("active_covered", BigInteger, nullable=False),
    Column("both_covered", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("active_size", BigInteger, nullable=False),
    Column("size_difference_squared", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "version", "seq"),
)
"""What the classes that became known say of a candidate's sets in a run, beside those in force.

`covered`, `active_covered` and `both_covered` count known nodes; `size` and `active_size` are sums
over all nodes of the run."""

consulted = Table(
    "consulted",
    metadata,
    Column("project", Text),
    Column("n", BigInteger),
    Column("version", Text, nullable=False),
    Column("seq", BigInteger),
    Column("known", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "n", "seq"),
    ForeignKeyConstraint(["project", "n"], ["activation.project", "activation.n"]),
    Index("consulted_by_version", "project", "version"),
)
"""Runs of which `known` nodes of known class were in a version's shadow sets when activation `n`
took it into use. They may have helped to choose it: none of their nodes ever calibrates it."""
