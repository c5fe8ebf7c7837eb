"""The rows that entries of the chain are derived from again, as plain columns.

`ringfence verify` goes through a million predictions here: only the columns that are needed are
read, and no object is made per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, select

from ringfence.connector.store.blocks import split
from ringfence.connector.store.tables import (
    consulted,
    further_set,
    grouping,
    joined,
    label,
    member,
    prediction,
    shadow_set,
)

ROWS_PER_FETCH = 10_000
Rows = Sequence[Any]


def evaluated_nodes(connection: Connection, project: str) -> Rows:
    """Return key, run, size, whether it was sampled and whether listed, of every evaluated node."""
    of = prediction.c
    is_listed = of.lists.is_not(None).label("is_listed")
    columns = of.node_key, of.seq, of.size, of.sampled, is_listed
    query = select(*columns).where(of.project == project)
    return connection.execute(query).all()


def noticed_labels(connection: Connection, project: str) -> Rows:
    """Return time, key, class and what was said of it (covered, covered_naive, unseen), by time."""
    of = label.c
    columns = of.noticed_ns, of.node_key, of.label, of.covered, of.covered_naive, of.unseen
    query = select(*columns).where(of.project == project)
    return connection.execute(query.order_by(of.noticed_ns)).all()


def sets_of_run(connection: Connection, project: str, seq: int) -> Rows:
    """Return key, classes, p-values and scores of a run's predictions, as JSON texts."""
    of = prediction.c
    query = select(of.node_key, of.classes, of.p_values, of.scores)
    return connection.execute(query.where(of.project == project, of.seq == seq)).all()


def further_sizes(connection: Connection, project: str, seq: int) -> Rows:
    """Return key, alpha and size of a run's sets at the alphas after the first."""
    of = further_set.c
    query = select(of.node_key, of.alpha, of.size)
    return connection.execute(query.where(of.project == project, of.seq == seq)).all()


def p_value_texts(connection: Connection, project: str, seqs: Sequence[int]) -> Rows:
    """Return key, run and p-values, as JSON text, of the predictions of some runs."""
    of = prediction.c
    query = select(of.node_key, of.seq, of.p_values).where(of.project == project)
    return [
        row
        for part in split(seqs)
        for row in connection.execute(query.where(of.seq.in_(part)))
    ]  # fmt: skip


def joined_nodes(connection: Connection, project: str) -> Rows:
    """Return joining run, version, key, evaluating run and class of every joined node, by run."""
    of = joined.c
    columns = of.seq, of.version, of.node_key, of.evaluated_seq, of.label
    return connection.execute(select(*columns).where(of.project == project).order_by(of.seq)).all()


def evaluated_members(connection: Connection, project: str, version: str) -> Rows:
    """Return key and role of the evaluated nodes that took part in a version's training."""
    of, evaluated = member.c, prediction.c
    same = and_(of.project == evaluated.project, of.node_key == evaluated.node_key)
    query = select(of.node_key, of.role).join(prediction, same)
    return connection.execute(query.where(of.project == project, of.version == version)).all()


def members_of_role(
    connection: Connection, project: str, version: str, roles: Sequence[str]
) -> Sequence[str]:
    """Return the keys of a version's members that have one of some roles."""
    of = member.c
    query = select(of.node_key).where(of.project == project, of.version == version)
    return connection.execute(query.where(of.role.in_(roles))).scalars().all()


def consulted_by_activation(connection: Connection, project: str) -> Rows:
    """Return number of the activation, version and run of what helped to choose versions."""
    of = consulted.c
    return connection.execute(select(of.n, of.version, of.seq).where(of.project == project)).all()


def shadow_sets(connection: Connection, project: str, version: str, seq: int) -> Rows:
    """Return key, size and classes, as JSON text, of a candidate's sets in a run."""
    of = shadow_set.c
    query = select(of.node_key, of.size, of.classes).where(of.project == project)
    return connection.execute(query.where(of.version == version, of.seq == seq)).all()


def grouped_nodes(connection: Connection, project: str) -> Rows:
    """Return key and name (`property=value`) of every group of an evaluated node."""
    of = grouping.c
    name = of.property.concat("=").concat(of.value)
    return connection.execute(select(of.node_key, name).where(of.project == project)).all()
