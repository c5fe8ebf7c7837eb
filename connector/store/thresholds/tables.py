"""Tables of what a run decided besides predictions: thresholds, and sets at further alphas.

`tables` has all the others, and offers these too.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

metadata = MetaData()


def partial_index(name: str, *columns: str, where: str) -> Index:
    """Return an index of the rows for which a condition holds, on every engine."""
    condition = text(where)
    return Index(name, *columns, sqlite_where=condition, postgresql_where=condition)


threshold = Table(
    "threshold",
    metadata,
    Column("project", Text),
    Column("seq", BigInteger),
    Column("alpha", Double),
    Column("band", Text),
    Column("class", Text),
    Column("level", Double, nullable=False),
    Column("threshold", Double),
    Column("n_calibration", BigInteger, nullable=False),
    Column("effective_calibration", Double, nullable=False),
    Column("n_evaluated", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "seq", "alpha", "band", "class"),
    ForeignKeyConstraint(["project", "seq"], ["run.project", "run.seq"]),
)
"""The thresholds of a run: one per alpha, stratum and class, with the calibration nodes behind it.

`band` names the stratum, such as the degrees `2-4`, and is empty where all nodes share one
threshold; `class` is empty where all classes do. A threshold of NULL is -infinity."""

further_set = Table(
    "further_set",
    metadata,
    Column("project", Text),
    Column("node_key", Text),
    Column("alpha", Double),
    Column("seq", BigInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("covered", Boolean),
    PrimaryKeyConstraint("project", "node_key", "alpha"),
    ForeignKeyConstraint(["project", "node_key"], ["prediction.project", "prediction.node_key"]),
    Index("further_set_by_run", "project", "seq"),
)
"""The sets of an evaluated node at the alphas after the first one: size, and whether covered.

Which classes are in one follows from the p-values of the prediction and the levels of the run."""
