"""Evaluated nodes whose class became known and that calibrate later runs of any version.

A node joins a model version once, by the version's first run that counted it, and is never
evaluated again. The rows are written with that run, and their digest is part of its chain entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, func, insert, select

from ringfence.connector.records import JoinedNode, RunCount
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.retention.kept_detail import BEYOND_EXCLUSION, p_values_of
from ringfence.connector.store.tables import joined, prediction, run
from ringfence.connector.store.worklist.sampled_nodes import IS_SAMPLED


def insert_joined(
    connection: Connection, project: str, version: str, seq: int, nodes: Sequence[JoinedNode]
) -> None:
    """Write the nodes that join by run `seq`, inside the transaction that decides it."""
    for part in split(nodes):
        connection.execute(
            insert(joined),
            [
                {
                    "project": project,
                    "version": version,
                    "node_key": node.node_key,
                    "seq": seq,
                    "evaluated_seq": node.evaluated_in,
                    "label": node.label,
                }
                for node in part
            ],
        )


def joined_digest(nodes: Iterable[JoinedNode]) -> str:
    """Return one hash over the nodes that join by one run, in the order of their keys."""
    digest = hashlib.sha256()
    for node in sorted(nodes, key=lambda node: node.node_key):
        digest.update(dumps([node.node_key, node.evaluated_in, node.label]).encode())
    return digest.hexdigest()


_LISTED_APART = prediction.c.lists.is_not(None) & prediction.c.sampled.is_(False)


def run_counts(store: Store, project: str) -> list[RunCount]:
    """Return number, time, size and version of every run, oldest first."""
    query = (
        select(run.c.seq, run.c.decided_ns, run.c.n_evaluated, run.c.model)
        .where(run.c.project == project)
        .order_by(run.c.seq)
    )
    with store.reading() as connection:
        listed = _count_by_run(connection, project, _LISTED_APART)
        sampled = _count_by_run(connection, project, IS_SAMPLED)
        return [
            RunCount(*row, listed.get(row.seq, 0), sampled.get(row.seq, 0))
            for row in connection.execute(query)
        ]


def _count_by_run(
    connection: Connection, project: str, chosen: ColumnElement[bool]
) -> dict[int, int]:
    """Return how many nodes of each run were chosen; partial indexes have them."""
    query = (
        select(prediction.c.seq, func.count())
        .where(prediction.c.project == project, chosen)
        .group_by(prediction.c.seq)
    )
    return {int(seq): int(count) for seq, count in connection.execute(query)}


def joined_by_run(connection: Connection, project: str, seq: int) -> list[JoinedNode]:
    """Return the nodes that joined by a run, by key."""
    query = (
        select(joined.c.node_key, joined.c.evaluated_seq, joined.c.label)
        .where(joined.c.project == project, joined.c.seq == seq)
        .order_by(joined.c.node_key)
    )
    return [JoinedNode(*row) for row in connection.execute(query)]


def p_values_of_runs(
    store: Store, project: str, seqs: Sequence[int]
) -> Iterator[tuple[int, str, tuple[float, ...]]]:
    """Yield run, class and p-values of the nodes of known class that some runs evaluated.

    A p-value that retention removed was at most every level of its run, and 0 stands for it.
    """
    query = select(prediction.c.seq, prediction.c.label, prediction.c.p_values).where(
        prediction.c.project == project, prediction.c.label.is_not(None)
    )
    with store.reading() as connection:
        for part in split(seqs):
            for row in connection.execute(query.where(prediction.c.seq.in_(part))):
                yield int(row.seq), row.label, p_values_of(row.p_values, BEYOND_EXCLUSION)
