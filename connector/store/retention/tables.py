"""The table of runs whose details retention removed; `tables` has all the others, and offers it."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKeyConstraint,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from ringfence.connector.store.thresholds.tables import metadata

removal = Table(
    "removal",
    metadata,
    Column("project", Text),
    Column("seq", BigInteger),
    Column("at_ns", BigInteger, nullable=False),
    Column("keep_days", Double, nullable=False),
    Column("nodes", BigInteger, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("shadow_sets", BigInteger, nullable=False),
    Column("freed", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "seq"),
    ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
)
"""A run whose details were removed, when, and under which period.

`nodes` predictions lost their scores and the p-values of classes that the graph does not show,
`entries` rows of the worklist went, `shadow_sets` lost their p-values; `freed` are the characters
of text that this saved. Sets, classes, coverage and the keys of the nodes stay."""
