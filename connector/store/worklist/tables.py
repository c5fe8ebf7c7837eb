"""Tables of the worklist; `connector.store.tables` has all the others, and offers these too."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from ringfence.connector.store.thresholds.tables import metadata

worklist_entry = Table(
    "worklist_entry",
    metadata,
    Column("project", Text),
    Column("node_key", Text),
    Column("class", Text),
    Column("p", Double, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("degree", BigInteger, nullable=False),
    Column("known", Boolean, nullable=False),
    PrimaryKeyConstraint("project", "node_key", "class"),
    Index(
        "worklist_entry_by_p", "project", "class", "known", "p", "node_key", "seq", "size", "degree"
    ),
)
"""A class in the set of an evaluated node, with its p-value: what the worklist is sorted by.

Each row follows from a row of `prediction` (`known` from `labelled_ns`), and `ringfence verify`
compares the two. The index has every column, so that filters read no table."""

mark = Table(
    "mark",
    metadata,
    Column("project", Text),
    Column("n", BigInteger),
    Column("node_key", Text, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("outcome", Text),
    Column("about", Text),
    Column("assignee", Text),
    PrimaryKeyConstraint("project", "n"),
    CheckConstraint("action IN ('claim', 'release', 'note', 'done', 'reopen')", name="mark_action"),
    Index("mark_by_node", "project", "node_key", "n"),
)
"""What a person did with a node of the worklist; no coverage row, set or verdict rests on it.

`outcome` is what came out, about the class `about`; `assignee` is who shall look at it."""
