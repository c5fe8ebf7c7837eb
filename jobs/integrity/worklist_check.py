"""The worklist against the record: entries follow from predictions, marks and lists are sealed.

Removing a row from the worklist hides a node from the people who work on it; sets, coverage and
verdicts do not depend on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader, Row
from ringfence.connector.store.worklist.entries import entries_of
from ringfence.connector.store.worklist.listed_nodes import COUNT, DIGEST, lists_digest
from ringfence.connector.store.worklist.marks import KIND, read_marks

MAX_LISTED_ROWS = 20  # in one run; of the others only the number is listed
Entry = tuple[float, int, int, int, bool]
"""p-value, run, size of the set, degree, whether the class is known."""


def find_entry_edits(
    seq: int, rows: Sequence[Row], classes: Sequence[str] | None, entries: Sequence[Row]
) -> Iterator[str]:
    """Yield the `entries` of some nodes of a run that are not as their predictions `rows` say.

    Nothing where the model's classes can't be read, which is a problem of its own.
    """
    if classes is None:
        return
    expected = {id_: entry for row in rows for id_, entry in _expected(seq, row, classes)}
    stored = {
        (row["node_key"], row["class"]): tuple(
            row[name] for name in ("p", "seq", "size", "degree", "known")
        )
        for row in entries
    }
    changed = sorted(id_ for id_ in {*expected, *stored} if expected.get(id_) != stored.get(id_))
    for node_key, class_ in changed[:MAX_LISTED_ROWS]:
        yield f"worklist_entry {node_key} (run {seq}), {class_!r}: the row is not as the set says"
    if len(changed) > MAX_LISTED_ROWS:
        yield f"… and {len(changed) - MAX_LISTED_ROWS} more entries of run {seq}"


def find_orphans(reader: RecordReader) -> Iterator[str]:
    """Yield the number of entries of nodes that were never evaluated."""
    if count := reader.count_orphaned_entries():
        yield f"worklist_entry: {count} rows of nodes that were never evaluated"


def find_mark_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield the marks that are not as the chain has them."""
    recorded = {body["mark"]["n"]: body["mark"] for body in record.bodies(KIND)}
    stored = {mark.n: asdict(mark) for mark in read_marks(reader.connection, reader.project)}
    for n in sorted({*recorded, *stored}):
        if n not in stored:
            yield f"mark {n}: the row is gone"
        elif n not in recorded:
            yield f"mark {n}: the row was never recorded"
        elif changed := _changed(recorded[n], stored[n]):
            yield f"mark {n}: {', '.join(changed)} changed"


def _changed(recorded: Mapping[str, Any], stored: Mapping[str, Any]) -> list[str]:
    return sorted(name for name, value in stored.items() if recorded.get(name) != value)


def _expected(
    seq: int, row: Row, classes: Sequence[str]
) -> Iterator[tuple[tuple[str, str], Entry]]:
    try:
        inside, values = json.loads(row["classes"]), json.loads(row["p_values"])
        made = entries_of(
            row["node_key"], inside, dict(zip(classes, values, strict=False)), row["degree"]
        )
    except (ValueError, TypeError):  # the prediction's own problem
        return
    known = row["labelled_ns"] is not None
    for entry in made:
        yield (
            (entry["node_key"], entry["class"]),
            (entry["p"], seq, entry["size"], entry["degree"], known),
        )


def find_list_edits(seq: int, rows: Sequence[Row], decided: Mapping[str, Any]) -> Iterator[str]:
    """Yield whether the listed nodes of a run are not those that its entry `decided` seals."""
    texts = {row["node_key"]: row["lists"] for row in rows}
    listed = sum(text is not None for text in texts.values())
    sealed = decided.get(COUNT, 0)
    if listed != sealed:
        yield f"run {seq}: {listed} nodes are on lists, but {sealed} were put on them"
        return
    try:
        lists = {key: None if text is None else json.loads(text) for key, text in texts.items()}
    except ValueError:
        lists = {}
    if listed and lists_digest(lists) != decided.get(DIGEST):
        yield f"run {seq}: lists of some of {listed} listed nodes are not what was decided"
