"""Flags in the mirror of nodes that have been evaluated, brought up to date from SQL.

A node is more than its key: one that has the key of an evaluated node is another node where its
creation time differs from the sealed one *and* it carries no EVALUATED of the project. One that
carries it only had its time changed. Where the graph has no creation times, a node is another one
once a run has seen that its key was gone. Predictions of older versions have no sealed time and
count as those of the nodes that have their keys.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import split_record_key
from ringfence.connector.mirror import Mirror, find_recorded
from ringfence.connector.neo4j.compare import find_evaluated
from ringfence.connector.store import predictions
from ringfence.connector.store.models import members
from ringfence.connector.store.predictions import IdentityBlock
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.workspace import Workspace

_UNRECORDED = -(2**63)  # placeholder of a creation time that the record lacks
NO_ROWS = np.empty(0, np.int64)


def mark_evaluated(
    workspace: Workspace,
    mirror: Mirror,
    writer: Writer | None = None,
    new_rows: NDArray[np.int64] = NO_ROWS,
) -> int:
    """Bring the mirror's flags up to what SQL has decided since the mirror was saved.

    Returns how many evaluated nodes have another creation time than the sealed one. `new_rows` are
    nodes that were just read: if one has a key on record, all flags are read again. With a writer
    the record learns which nodes have left, where nothing but that tells two nodes apart.
    """
    store, project = workspace.store, workspace.project
    if mirror.seq and predictions.are_any_evaluated(
        store, project, mirror.keys.take(new_rows.tolist())
    ):
        mirror.seq = 0
    has_times = workspace.mapping.classified.created_at is not None
    same = np.zeros(mirror.size, np.bool_)
    others: dict[int, int] = {}
    left: list[str] = []
    for block in predictions.identity_blocks(store, project, mirror.seq):
        rows, numbers = _rows_of(mirror, block)
        matches = (rows >= 0) & _is_same_node(mirror, rows, block, has_times)
        same[rows[matches]] = True
        for place in np.flatnonzero(matches & (numbers > 0)).tolist():
            mirror.incarnations[int(rows[place])] = int(numbers[place])
        for place in np.flatnonzero((rows >= 0) & ~matches).tolist():
            row = int(rows[place])
            others[row] = max(others.get(row, 0), int(numbers[place]))
        left += [] if has_times else _left(mirror, rows, block)
    mirror.evaluated[same] = True
    if writer is not None:
        predictions.mark_gone(writer, left)
    return _tell_apart(workspace, mirror, {row: n for row, n in others.items() if not same[row]})


def _rows_of(mirror: Mirror, block: IdentityBlock) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the nodes that have the keys of evaluated ones now, and the numbers on record."""
    rows, numbers = mirror.find(block.node_keys), np.zeros(len(block.node_keys), np.int64)
    for place in np.flatnonzero(rows < 0).tolist():  # one with a number is no node's own key
        typed_key, numbers[place] = split_record_key(block.node_keys[place])
        if numbers[place]:
            rows[place] = mirror.find([typed_key])[0]
    return rows, numbers


def _is_same_node(
    mirror: Mirror, rows: NDArray[np.int64], block: IdentityBlock, has_times: bool
) -> NDArray[np.bool_]:
    """Whether the nodes at `rows` are those on record, as far as the record tells."""
    sealed = (_UNRECORDED if ns is None else ns for ns in block.created_ns)
    times = np.fromiter(sealed, np.int64, len(rows))
    same = mirror.created_ns[rows] == times if has_times else np.array(block.in_graph, np.bool_)
    return np.asarray(same | (times == _UNRECORDED))


def _left(mirror: Mirror, rows: NDArray[np.int64], block: IdentityBlock) -> Iterable[str]:
    """Evaluated nodes that are in the graph by the record, and neither mirrored nor set aside."""
    aside = {bad.node_key for bad in mirror.rejected.values()}
    for place in np.flatnonzero(rows < 0).tolist():
        key = block.node_keys[place]
        is_sealed = block.created_ns[place] is not None
        if is_sealed and block.in_graph[place] and split_record_key(key)[0] not in aside:
            yield key


def _tell_apart(workspace: Workspace, mirror: Mirror, others: dict[int, int]) -> int:
    """Ask the graph about nodes whose times are not the sealed ones; count those that kept theirs.

    `others` has by row the highest number on record. A node that carries EVALUATED under its key
    had its time changed; any other gets the next number. The mirror keeps the answer.
    """
    open_rows = [row for row in sorted(others) if row not in mirror.incarnations]
    size, changed = workspace.settings.engine.read_rows, 0
    for start in range(0, len(open_rows), size):
        part = open_rows[start : start + size]
        keys = mirror.keys.take(part)
        shown = find_evaluated(workspace.graph, workspace.mapping, workspace.project, keys)
        for row, key in zip(part, keys, strict=True):
            typed_key, number = split_record_key(shown.get(key, ""))
            if typed_key == key:
                mirror.incarnations[row] = number
                mirror.evaluated[row] = True
                changed += 1
            else:
                mirror.incarnations[row] = others[row] + 1
    return changed


def mark_members(workspace: Workspace, mirror: Mirror, version: str) -> None:
    """Close the model's own labelled nodes; once per model and mirror, however many they are.

    A node that has a member's key and another creation time is another node, and stays open.
    """
    if mirror.members_of == version:
        return
    known = members(workspace.store, workspace.project, version)
    rows = find_recorded(mirror, [member.node_key for member in known])
    recorded = (member.created_ns for member in known)
    times = np.array([_UNRECORDED if ns is None else ns for ns in recorded], np.int64)
    same = (times == _UNRECORDED) | (mirror.created_ns[rows] == times)
    mirror.evaluated[rows[(rows >= 0) & same]] = True
    mirror.members_of = version
