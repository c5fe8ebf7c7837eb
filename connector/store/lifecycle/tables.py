"""Tables of a model's life; `tables` has all the others, and offers these too."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from ringfence.connector.store.thresholds.tables import metadata

activation = Table(
    "activation",
    metadata,
    Column("project", Text),
    Column("n", BigInteger),
    Column("at_ns", BigInteger, nullable=False),
    Column("version", Text, nullable=False),
    Column("was", Text),
    Column("how", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", Text, nullable=False),
    PrimaryKeyConstraint("project", "n"),
    ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
)
"""Every change of the model version in use; the newest row names the active one.

`was` is the version before, NULL for the first; `how` is first, promoted, rolled back, or migrated
(the version was recorded when every training took its model into use). `actor` is who did it, as
JSON. A version without a row is a candidate; one with a row that is not active is retired."""

comparison = Table(
    "comparison",
    metadata,
    Column("project", Text),
    Column("n", BigInteger),
    Column("at_ns", BigInteger, nullable=False),
    Column("version", Text, nullable=False),
    Column("against", Text),
    Column("result", Text, nullable=False),
    PrimaryKeyConstraint("project", "n"),
    ForeignKeyConstraint(["project", "version"], ["model.project", "model.version"]),
    ForeignKeyConstraint(["project", "against"], ["model.project", "model.version"]),
)
"""A model version on the holdout beside another one and beside what it has to beat.

`against` is the other version, NULL where there was none that could be compared; `result` is JSON:
nodes, metrics with intervals, differences (`jobs.lifecycle.comparison`)."""
