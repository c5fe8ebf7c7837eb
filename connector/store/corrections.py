"""Classes of calibration nodes that were corrected or withdrawn in the graph after the training.

The members of a model stay as they were recorded; a correction is a row and a chain entry beside
them, and counts from then on. `calibration_members` is what a run is calibrated with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection, func, insert, select

from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import (
    Correction,
    CorrectionReason,
    Member,
    NodeState,
    StoredCorrection,
)
from ringfence.connector.store import chain
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.models import members
from ringfence.connector.store.tables import correction
from ringfence.connector.store.writer import Writer

KIND = "corrections"


def record_corrections(writer: Writer, version: str, corrections: Sequence[Correction]) -> None:
    """Write corrections of a model's calibration nodes, and a chain entry, in one transaction."""
    if not corrections:
        return
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = _later_than_all(connection, project, writer.begin(connection))
        connection.execute(
            insert(correction),
            [
                {
                    "project": project,
                    "version": version,
                    "node_key": changed.node_key,
                    "noticed_ns": now,
                    "was": changed.was,
                    "label": changed.label,
                    "reason": changed.reason,
                }
                for changed in corrections
            ],
        )
        so_far = [
            changed
            for changed in all_corrections(connection, project)
            if changed.version == version
        ]
        facts: JsonObject = {
            "version": version,
            "nodes": len(corrections),
            "rows": corrections_digest(changed for changed in so_far if changed.noticed_ns == now),
            "all_rows": corrections_digest(so_far),
            "noticed_ns": now,
        }
        chain.append(connection, project, writer.key, KIND, facts)


def find_corrections(
    known: Sequence[Member],
    so_far: Mapping[str, StoredCorrection],
    now: Mapping[str, NodeState],
    classes: Sequence[str],
) -> list[Correction]:
    """Return how the graph differs from the classes on record, for the members in `now`.

    `so_far` has the newest correction of each node, `classes` the model's names in their order.

    >>> member = Member("i:1", "calibration", 0, created_ns=5)
    >>> find_corrections([member], {}, {"i:1": NodeState("b", 5)}, ["a", "b"])[0].reason
    'corrected'
    >>> find_corrections([member], {}, {"i:1": NodeState("a", 9)}, ["a", "b"])[0].reason
    'another node'
    """
    corrections = []
    for member in known:
        state = now.get(member.node_key)
        if state is None:  # it has left the graph
            continue
        before = so_far.get(member.node_key)
        was = classes[member.class_index] if before is None else before.label
        if _is_another_node(member, state):
            if was is not None:
                corrections.append(Correction(member.node_key, was, None, "another node"))
        elif state.class_ != was:
            reason: CorrectionReason = "withdrawn" if state.class_ is None else "corrected"
            corrections.append(Correction(member.node_key, was, state.class_, reason))
    return corrections


def _is_another_node(member: Member, now: NodeState) -> bool:
    """Whether a node with the member's key was created after the member was; a time that was set
    to an earlier one is a correction of the time, and the node is still the same.
    """
    if member.created_ns is None or now.created_ns is None:
        return False
    return now.created_ns > member.created_ns


def newest_corrections(store: Store, project: str, version: str) -> dict[str, StoredCorrection]:
    """Return the newest correction of each node of a model version, by key."""
    with store.reading() as connection:
        rows = all_corrections(connection, project)
    return {row.node_key: row for row in rows if row.version == version}


def calibration_members(
    store: Store, project: str, version: str, classes: Sequence[str]
) -> list[Member]:
    """Return the calibration nodes with the classes that count now, without those that are out."""
    corrected = newest_corrections(store, project, version)
    index = {name: i for i, name in enumerate(classes)}
    counted = []
    for member in members(store, project, version, "calibration"):
        change = corrected.get(member.node_key)
        if change is None:
            counted.append(member)
        elif change.label in index:
            counted.append(replace(member, class_index=index[change.label]))
    return counted


def all_corrections(connection: Connection, project: str) -> list[StoredCorrection]:
    """Return every correction of a project, oldest first."""
    query = (
        select(
            correction.c.node_key, correction.c.was, correction.c.label, correction.c.reason,
            correction.c.version, correction.c.noticed_ns,
        )
        .where(correction.c.project == project)
        .order_by(correction.c.noticed_ns, correction.c.node_key)
    )  # fmt: skip
    return [StoredCorrection(**row._asdict()) for row in connection.execute(query)]


def corrections_digest(rows: Iterable[StoredCorrection]) -> str:
    """Return one hash over all values of corrections, in the order of their times and keys."""
    digest = hashlib.sha256()
    for row in sorted(rows, key=lambda row: (row.noticed_ns, row.node_key)):
        facts = [row.noticed_ns, row.node_key, row.was, row.label, row.reason]
        digest.update(dumps(facts).encode())
    return digest.hexdigest()


def _later_than_all(connection: Connection, project: str, now: int) -> int:
    """A time that no correction has yet: a chain entry identifies its rows by it."""
    query = select(func.max(correction.c.noticed_ns)).where(correction.c.project == project)
    newest = connection.execute(query).scalar()
    return now if newest is None else max(now, newest + 1)
