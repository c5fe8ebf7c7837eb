"""The rows that a verification since a checkpoint reads: by run, by node, and beyond the last run.

Each query costs what it returns: none goes through a table that grows with all predictions, but for
first sightings, which have no index by time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Select, Table, func, literal, or_, select

from ringfence.connector.records import NoticedLabel
from ringfence.connector.store.audit_chain.integrity import Row
from ringfence.connector.store.blocks import split
from ringfence.connector.store.dialects import DIALECTS
from ringfence.connector.store.tables import (
    consulted,
    further_set,
    joined,
    label,
    member,
    monitor_input,
    prediction,
    shadow_set,
    threshold,
    worklist_entry,
)

NUMBERED_BY_RUN = (prediction, threshold, further_set, joined, monitor_input)
"""Tables whose rows are found by the number of their run."""


def count_stray_rows(connection: Connection, project: str, last: int) -> dict[tuple[str, int], int]:
    """Return how many rows have the number of a run below one or beyond the last.

    They are counted by table and number.
    """
    counts = {}
    for table in NUMBERED_BY_RUN:
        beyond = or_(table.c.seq > last, table.c.seq < 1)
        query = select(table.c.seq, func.count()).where(table.c.project == project, beyond)
        for seq, count in connection.execute(query.group_by(table.c.seq)):
            counts[table.name, int(seq)] = int(count)
    return counts


def predictions_of_nodes(
    connection: Connection, project: str, keys: Collection[str]
) -> dict[int, list[Row]]:
    """Return the predictions of some nodes by run."""
    rows: dict[int, list[Row]] = {}
    for row in _of_nodes(connection, select(prediction), prediction, project, keys):
        rows.setdefault(row.seq, []).append(row._asdict())
    return rows


def labels_of_nodes(
    connection: Connection, project: str, keys: Collection[str]
) -> dict[str, list[NoticedLabel]]:
    """Return all label rows of some nodes by key, oldest first."""
    by_key: dict[str, list[NoticedLabel]] = {}
    for row in _of_nodes(connection, select(label), label, project, keys):
        by_key.setdefault(row.node_key, []).append(NoticedLabel(**row._asdict()))
    for labels in by_key.values():
        labels.sort(key=lambda noticed: noticed.noticed_ns)
    return by_key


def further_sets_of_nodes(
    connection: Connection, project: str, keys: Collection[str]
) -> dict[int, list[Row]]:
    """Return the sets of some nodes at the alphas after the first, by run."""
    rows: dict[int, list[Row]] = {}
    for row in _of_nodes(connection, select(further_set), further_set, project, keys):
        rows.setdefault(row.seq, []).append(row._asdict())
    return rows


def worklist_of_nodes(
    connection: Connection, project: str, keys: Collection[str]
) -> dict[str, list[Row]]:
    """Return the worklist's rows of some nodes by key."""
    rows: dict[str, list[Row]] = {}
    for row in _of_nodes(connection, select(worklist_entry), worklist_entry, project, keys):
        rows.setdefault(row.node_key, []).append(row._asdict())
    return rows


def shadow_sets_of_nodes(
    connection: Connection, project: str, keys: Collection[str]
) -> Iterator[Row]:
    """Yield the shadow sets of some nodes, each with the node's newest class."""
    same = (prediction.c.project == shadow_set.c.project) & (
        prediction.c.node_key == shadow_set.c.node_key
    )
    query = select(shadow_set, prediction.c.label).join(prediction, same)
    for row in _of_nodes(connection, query, shadow_set, project, keys):
        yield row._asdict()


def labels_noticed(
    connection: Connection, project: str, times: Collection[int], after: int | None
) -> list[tuple[int, list[NoticedLabel]]]:
    """Return the label rows noticed at some times, and those after one, by time."""
    of_project = select(label).where(label.c.project == project)
    queries = [of_project.where(label.c.noticed_ns.in_(part)) for part in split(sorted(times))]
    if after is not None:
        queries.append(of_project.where(label.c.noticed_ns > after))
    rows = {
        (row.noticed_ns, row.node_key): row
        for query in queries
        for row in connection.execute(query)
    }
    ordered = sorted(rows)
    return [
        (noticed_ns, [NoticedLabel(**rows[id_]._asdict()) for id_ in block])
        for noticed_ns, block in groupby(ordered, key=lambda id_: id_[0])
    ]


def times_of_run(connection: Connection, project: str, seq: int) -> set[int]:
    """Return the times at which classes of a run's nodes were noticed."""
    same = (label.c.project == prediction.c.project) & (label.c.node_key == prediction.c.node_key)
    query = select(label.c.noticed_ns).distinct().join_from(prediction, label, same)
    of_run = query.where(prediction.c.project == project, prediction.c.seq == seq)
    return {int(noticed_ns) for noticed_ns in connection.execute(of_run).scalars()}


def joined_members_of_runs(
    connection: Connection, project: str, seqs: Collection[int]
) -> list[tuple[str, str, int]]:
    """Return version, role and number of nodes that joined by some runs and trained the version."""
    same = (
        (member.c.project == joined.c.project)
        & (member.c.version == joined.c.version)
        & (member.c.node_key == joined.c.node_key)
    )
    columns = joined.c.version, member.c.role
    query = select(*columns, func.count()).join_from(joined, member, same).group_by(*columns)
    return _counted(connection, query, project, seqs)


def joined_consulted_of_runs(
    connection: Connection, project: str, seqs: Collection[int]
) -> list[tuple[str, int]]:
    """Return version and number of nodes that joined by some runs and helped to choose it."""
    chosen_by = select(consulted.c.seq).where(
        consulted.c.project == joined.c.project,
        consulted.c.version == joined.c.version,
        consulted.c.seq == joined.c.evaluated_seq,
    )
    columns = joined.c.version, literal("").label("role")
    query = select(*columns, func.count()).where(chosen_by.exists()).group_by(joined.c.version)
    return [(version, nodes) for version, _, nodes in _counted(connection, query, project, seqs)]


def find_odd_values_of_runs(
    connection: Connection, project: str, seqs: Collection[int]
) -> dict[tuple[str, str], int]:
    """Return how many values of some runs are of another type than their column."""
    dialect = DIALECTS[connection.dialect.name]
    counts: dict[tuple[str, str], int] = {}
    for table in NUMBERED_BY_RUN:
        for seq in seqs:
            where = (table.c.project == project, table.c.seq == seq)
            for column, count in dialect.find_odd_values(connection, table, *where).items():
                counts[table.name, column] = counts.get((table.name, column), 0) + count
    return counts


def _counted(
    connection: Connection, query: Select[Any], project: str, seqs: Collection[int]
) -> list[tuple[str, str, int]]:
    counts: dict[tuple[str, str], int] = {}
    for part in split(sorted(seqs)):
        of_part = query.where(joined.c.project == project, joined.c.seq.in_(part))
        for version, role, nodes in connection.execute(of_part):
            counts[version, role] = counts.get((version, role), 0) + int(nodes)
    return [(version, role, nodes) for (version, role), nodes in sorted(counts.items())]


def _of_nodes(
    connection: Connection, query: Select[Any], table: Table, project: str, keys: Collection[str]
) -> Iterator[Any]:
    for part in split(sorted(keys)):
        of_part = query.where(table.c.project == project, table.c.node_key.in_(part))
        yield from connection.execute(of_part)
