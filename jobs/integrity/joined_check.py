"""Nodes that joined the calibration, against the chain and against what may calibrate a version."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.calibration.joined import joined_by_run, joined_digest
from ringfence.jobs.project.ancestors import ancestors_of


def find_joined_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield what is not as the chain has it of the nodes that joined a calibration.

    In runs of older versions no node joined.
    """
    decided = {body["run"]["seq"] for body in record.bodies("decided")}
    for seq in sorted(reader.joining_runs() - decided):
        yield f"joined: rows of run {seq}, which was never decided"
    yield from find_joined_edits_of(reader, record, decided)
    yield from _learnt_edits(reader)
    yield from find_ancestor_edits(reader, record)


def find_joined_edits_of(
    reader: RecordReader, record: AuditRecord, seqs: Collection[int]
) -> Iterator[str]:
    """Yield what is not as the chain has it of the nodes that joined by some runs."""
    for body in record.bodies("decided"):
        seq = body["run"]["seq"]
        if seq not in seqs:
            continue
        rows = joined_by_run(reader.connection, reader.project, seq)
        sealed = body.get("joined", {"nodes": 0, "rows": joined_digest([])})
        if len(rows) != sealed["nodes"]:
            yield f"joined by run {seq}: {len(rows)} rows, but {sealed['nodes']} were recorded"
        elif joined_digest(rows) != sealed["rows"]:
            yield f"joined by run {seq}: node_key, evaluated_seq or label of some row changed"
        if reader.joined_versions(seq) - {body["run"]["model"]}:
            yield f"joined by run {seq}: version of some row is not the run's model"


def _learnt_edits(reader: RecordReader) -> Iterator[str]:
    """Yield the versions that nodes joined which must not calibrate them."""
    for version, role, nodes in reader.joined_members():
        yield describe_joined_members(version, role, nodes)
    for version, nodes in reader.consulted_joined():
        yield describe_joined_consulted(version, nodes)


def describe_joined_members(version: str, role: str, nodes: int) -> str:
    """Say that nodes of a version's training calibrate it."""
    return f"joined: {nodes} nodes calibrate {version} that were {role} nodes of its training"


def describe_joined_consulted(version: str, nodes: int) -> str:
    """Say that nodes of runs that helped to choose a version calibrate it."""
    return f"joined: {nodes} nodes calibrate {version} of runs that helped to choose it"


def find_ancestor_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield the versions that nodes calibrate which an ancestor learnt from, or was chosen by.

    A warm start hands down what the ancestor's weights know of these nodes.
    """
    for version, row in sorted(record.models.items()):
        for ancestor in ancestors_of(json.loads(row["manifest"])):
            if nodes := reader.learnt_by_ancestor(version, ancestor):
                yield (
                    f"calibration of {version}: {nodes} nodes of it were trained or stopped by in "
                    f"{ancestor}, whose weights it began with"
                )
            if nodes := reader.consulted_by_ancestor(version, ancestor):
                yield (
                    f"calibration of {version}: {nodes} nodes of it are of runs that helped to "
                    f"choose {ancestor}, whose weights it began with"
                )
