"""Shadow sets, their coverage, and the runs that helped to choose a version, against the chain."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader, Row
from ringfence.connector.store.retention.removals import KIND as REMOVED
from ringfence.connector.store.shadow import coverage, sets
from ringfence.connector.store.shadow.consulted import read_consulted

Id = tuple[str, int]
"""Version and run."""


def find_shadow_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield the rows about shadow sets that are not as the chain has them."""
    recorded = {_id(body["shadow"]) for body in record.bodies(sets.KIND)}
    for version, seq in sorted(reader.shadowed() - recorded):
        yield f"shadow_set of {version} in run {seq}: rows that no run recorded"
    yield from find_shadow_set_edits(reader, record, {seq for _, seq in recorded})
    yield from find_shadow_record_edits(reader, record)


def find_shadow_record_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield what is not as the chain has it of shadow runs, their coverage, and runs consulted.

    None of these is a row per node.
    """
    recorded = {_id(body["shadow"]): body for body in record.bodies(sets.KIND)}
    stored = {_id(row): row for row in reader.shadow_runs()}
    for id_ in sorted({*recorded, *stored}):
        where = f"shadow_run of {id_[0]} in run {id_[1]}"
        if id_ not in stored:
            yield f"{where}: the row is gone"
        elif id_ not in recorded:
            yield f"{where}: the row was never recorded"
        elif changed := _changed(recorded[id_]["shadow"], stored[id_]):
            yield f"{where}: {', '.join(changed)} changed"
    yield from _coverage_edits(reader, record)
    yield from _consulted_edits(reader, record)


def find_shadow_set_edits(
    reader: RecordReader, record: AuditRecord, seqs: Collection[int]
) -> Iterator[str]:
    """Yield the shadow sets of some runs that are not as the chain has them."""
    left = {
        (version, removal["seq"]): shadow["kept"]
        for body in record.bodies(REMOVED)
        for removal in body["runs"]
        for version, shadow in removal["shadow"].items()
    }
    for body in record.bodies(sets.KIND):
        version, seq = _id(body["shadow"])
        if seq in seqs:
            digest = left.get((version, seq), body["sets"])
            yield from _set_edits(reader, version, seq, body, digest)


def _set_edits(
    reader: RecordReader, version: str, seq: int, body: Mapping[str, Any], digest: str
) -> Iterator[str]:
    where, rows = f"shadow_set of {version} in run {seq}", reader.shadow_sets(version, seq)
    if len(rows) != body["shadow"]["n_sets"]:
        yield f"{where}: {len(rows)} rows, but {body['shadow']['n_sets']} were recorded"
    elif digest != sets.sets_digest(
        (row["node_key"], row["size"], row["classes"], row["p_values"]) for row in rows
    ):
        yield f"{where}: node_key, size, classes or p_values of some row changed"
    else:
        wrong = [row["node_key"] for row in rows if row["covered"] != _covered(row)]
        if wrong:
            yield f"{where}: covered does not follow from the class ({', '.join(wrong[:5])})"


def find_shadow_judgement_edits(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the shadow sets whose `covered` does not follow from their node's newest class."""
    for row in rows:
        if row["covered"] != _covered(row):
            where = f"shadow_set of {row['version']} in run {row['seq']}"
            yield f"{where}: covered does not follow from the class ({row['node_key']})"


def _covered(row: Row) -> bool | None:
    return None if row["label"] is None else row["label"] in json.loads(row["classes"])


def _coverage_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    recorded = {_id(row): row for body in record.bodies(coverage.KIND) for row in body["rows"]}
    stored = {_id(row): row for row in reader.shadow_coverage()}
    for id_ in sorted({*recorded, *stored}):
        where = f"shadow_coverage of {id_[0]} in run {id_[1]}"
        if id_ not in stored:
            yield f"{where}: the row is gone"
        elif id_ not in recorded:
            yield f"{where}: the row was never recorded by an audit"
        elif changed := _changed(recorded[id_], stored[id_]):
            yield f"{where}: {', '.join(changed)} changed after the audit"


def _consulted_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Compare the runs that each activation could look at; other entries name none."""
    recorded = {
        entry.facts["activation"]["n"]: {
            seq: (entry.facts["activation"]["version"], known)
            for seq, known in entry.facts["consulted"]
        }
        for entry in record.entries
        if "consulted" in entry.facts
    }
    stored = read_consulted(reader.connection, reader.project)
    for n in sorted({*recorded, *stored}):
        if recorded.get(n, {}) != stored.get(n, {}):
            yield f"consulted: the runs of activation {n} are not those that were recorded"


def _changed(recorded: Row, stored: Row) -> list[str]:
    return [name for name, value in recorded.items() if stored.get(name) != value]


def _id(row: Row) -> Id:
    return row["version"], row["seq"]
