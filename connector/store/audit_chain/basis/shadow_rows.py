"""Shadow sets and the runs that helped to choose a version, compared with their seals.

Which runs helped decides who may calibrate a version; counts of shadow sets help to choose one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Connection, Select, func, select

from ringfence.connector.store.audit_chain.preflight_check import refuse_difference
from ringfence.connector.store.audit_chain.sealed_entries import SealedEntries
from ringfence.connector.store.lifecycle.activations import KIND as ACTIVATED
from ringfence.connector.store.retention.removals import KIND as REMOVED
from ringfence.connector.store.shadow.consulted import read_consulted
from ringfence.connector.store.shadow.sets import KIND as SHADOWED
from ringfence.connector.store.shadow.sets import sets_digest
from ringfence.connector.store.tables import prediction, shadow_set

KINDS = (SHADOWED, ACTIVATED, REMOVED)
Part = tuple[str, int]
"""A version and a run."""


def require_consulted(connection: Connection, project: str, sealed: SealedEntries) -> None:
    """Compare the runs that each activation could look at."""
    recorded = {
        body["activation"]["n"]: {
            seq: (body["activation"]["version"], known) for seq, known in body["consulted"]
        }
        for body in sealed.of_kind(ACTIVATED)
        if "consulted" in body
    }
    stored = read_consulted(connection, project)
    for n in sorted({*recorded, *stored}):
        if recorded.get(n, {}) != stored.get(n, {}):
            refuse_difference(f"consulted: the runs of activation {n} are not those recorded")


def require_shadow_counts(
    connection: Connection, project: str, sealed: SealedEntries, version: str
) -> None:
    """Compare of which nodes a version has shadow sets, by run, and which of them have a class.

    The classes beside predictions must have been compared.
    """
    of, node = shadow_set.c, prediction.c
    same = (node.project == of.project) & (node.node_key == of.node_key) & (node.seq == of.seq)
    query: Select[Any] = (
        select(of.seq, func.count())
        .select_from(shadow_set.join(prediction, same))
        .where(of.project == project, of.version == version)
        .where(of.covered.is_(None) == node.label.is_(None))
        .group_by(of.seq)
    )
    stored = {int(seq): int(rows) for seq, rows in connection.execute(query)}
    counts = select(of.seq, func.count()).where(of.project == project, of.version == version)
    rows = {int(seq): int(n) for seq, n in connection.execute(counts.group_by(of.seq))}
    bodies = [body["shadow"] for body in sealed.of_kind(SHADOWED)]
    recorded = {
        body["seq"]: body["n_sets"]
        for body in bodies
        if body["version"] == version and body["n_sets"]
    }
    for seq in sorted({*recorded, *rows}):
        if not recorded.get(seq, 0) == rows.get(seq, 0) == stored.get(seq, 0):
            refuse_difference(
                f"shadow_set of {version} in run {seq}: the rows are not those that were recorded"
            )


def require_shadow_sets(
    connection: Connection, project: str, sealed: SealedEntries, parts: Collection[Part]
) -> None:
    """Compare the shadow sets of some versions in some runs, and whether they held the class."""
    for difference in _set_differences(connection, project, sealed, parts):
        refuse_difference(difference)


def _set_differences(
    connection: Connection, project: str, sealed: SealedEntries, parts: Collection[Part]
) -> Iterator[str]:
    digests = {
        (body["shadow"]["version"], body["shadow"]["seq"]): body["sets"]
        for body in sealed.of_kind(SHADOWED)
    }
    digests |= {
        (version, removal["seq"]): shadow["kept"]
        for body in sealed.of_kind(REMOVED)
        for removal in body["runs"]
        for version, shadow in removal["shadow"].items()
    }
    for part in sorted(parts):
        rows = connection.execute(_sets_of(project, *part)).all()
        where = f"shadow_set of {part[0]} in run {part[1]}"
        if digests.get(part) != sets_digest(
            (row.node_key, row.size, row.classes, row.p_values) for row in rows
        ):
            yield f"{where}: the rows are not those that were recorded"
        elif any(row.covered != _holds(row) for row in rows):
            yield f"{where}: covered does not follow from the class of some node"


def _sets_of(project: str, version: str, seq: int) -> Select[Any]:
    of, node = shadow_set.c, prediction.c
    same = (node.project == of.project) & (node.node_key == of.node_key)
    query = select(shadow_set, node.label).select_from(shadow_set.join(prediction, same))
    return query.where(of.project == project, of.version == version, of.seq == seq)


def _holds(row: Any) -> bool | None:
    return None if row.label is None else row.label in json.loads(row.classes)
