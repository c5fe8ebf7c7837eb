"""Rows of an audit pack, block by block: predictions, classes, groups and chain entries.

Predictions come in the order of their keys' code points, in which the chain's digests are made; a
database's own order of texts may be another one. The keys of one run, or of the classes of one
audit, are in memory, no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import select

from ringfence.connector.records import ChainEntry
from ringfence.connector.store.blocks import split
from ringfence.connector.store.chain import head, read_entries
from ringfence.connector.store.engine import Store
from ringfence.connector.store.tables import grouping, label, mark, prediction
from ringfence.connector.store.thresholds.strata import same_node

ROWS_PER_BLOCK = 2_000
ENTRIES_PER_BLOCK = 500
PREDICTION_COLUMNS = (
    "node_key", "classes", "p_values", "scores", "degree", "band", "sampled", "lists",
)  # fmt: skip
LABEL_COLUMNS = (
    "node_key", "noticed_ns", "label", "happened_ns", "covered", "covered_naive", "unseen",
)  # fmt: skip
MARK_COLUMNS = (
    "n", "node_key", "at_ns", "who", "action", "note", "outcome", "about", "assignee",
)  # fmt: skip

Row = dict[str, Any]


def prediction_blocks(
    store: Store, project: str, seq: int, name_of: Callable[[str], str]
) -> Iterator[list[Row]]:
    """Yield a run's predictions in the order of the names that `name_of` gives their keys."""
    of_run = (prediction.c.project == project) & (prediction.c.seq == seq)
    columns = [prediction.c[name] for name in PREDICTION_COLUMNS]
    with store.reading() as connection:
        keys = connection.execute(select(prediction.c.node_key).where(of_run)).scalars()
        for part in split(sorted(keys, key=name_of), ROWS_PER_BLOCK):
            query = select(*columns).where(of_run, prediction.c.node_key.in_(part))
            rows = {row.node_key: row._asdict() for row in connection.execute(query)}
            yield [rows[key] for key in part]


def label_blocks(
    store: Store, project: str, since_ns: int, name_of: Callable[[str], str]
) -> Iterator[list[Row]]:
    """Yield classes that were noticed since a time: by time, then by the names of their nodes."""
    columns = [label.c[name] for name in LABEL_COLUMNS]
    noticed = select(label.c.noticed_ns).where(
        label.c.project == project, label.c.noticed_ns >= since_ns
    )
    with store.reading() as connection:
        times = connection.execute(noticed.distinct().order_by(label.c.noticed_ns)).scalars().all()
        for noticed_ns in times:
            then = (label.c.project == project) & (label.c.noticed_ns == noticed_ns)
            keys = connection.execute(select(label.c.node_key).where(then)).scalars()
            for part in split(sorted(keys, key=name_of), ROWS_PER_BLOCK):
                query = select(*columns).where(then, label.c.node_key.in_(part))
                rows = {row.node_key: row._asdict() for row in connection.execute(query)}
                yield [rows[key] for key in part]


def mark_blocks(store: Store, project: str) -> Iterator[list[Row]]:
    """Yield the marks of people, oldest first."""
    query = (
        select(*(mark.c[name] for name in MARK_COLUMNS))
        .where(mark.c.project == project)
        .order_by(mark.c.n)
        .execution_options(yield_per=ROWS_PER_BLOCK)
    )
    with store.reading() as connection:
        for block in connection.execute(query).partitions():
            yield [row._asdict() for row in block]


def group_blocks(
    store: Store, project: str, seq: int, name_of: Callable[[str], str]
) -> Iterator[list[Row]]:
    """Yield the groups of the nodes that a run evaluated, by the names of the nodes."""
    of = grouping.c
    of_run = (prediction.c.project == project) & (prediction.c.seq == seq)
    keys = select(of.node_key).join(prediction, same_node(grouping)).where(of_run).distinct()
    with store.reading() as connection:
        named = sorted(connection.execute(keys).scalars(), key=name_of)
        for part in split(named, ROWS_PER_BLOCK):
            query = select(of.node_key, of.property, of.value).where(
                of.project == project, of.node_key.in_(part)
            )
            rows = [row._asdict() for row in connection.execute(query)]
            yield sorted(rows, key=lambda row: (name_of(row["node_key"]), row["property"]))


def chain_blocks(store: Store, project: str) -> Iterator[tuple[ChainEntry, ...]]:
    """Yield the audit chain from its beginning."""
    with store.reading() as connection:
        newest = head(connection, project)
        for first in range(1, (newest[0] if newest else 0) + 1, ENTRIES_PER_BLOCK):
            yield read_entries(connection, project, first, first + ENTRIES_PER_BLOCK - 1)
