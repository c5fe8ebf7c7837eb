"""Nodes of older runs that later entries are about: their class became known, or they left.

Their rows are compared one by one with their label rows and their set, as those of a whole run are;
the digests over their runs are left to the sample and to the full verification.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.blocks import split
from ringfence.connector.store.checkpoint import later_rows
from ringfence.jobs.integrity.checkpoint.scope import Scope
from ringfence.jobs.integrity.prediction_check import (
    find_further_edits,
    find_row_edits,
    sealed_runs,
)
from ringfence.jobs.integrity.shadow_check import find_shadow_judgement_edits
from ringfence.jobs.integrity.worklist_check import find_entry_edits


def touched_nodes(reader: RecordReader, scope: Scope) -> set[str]:
    """Return the nodes whose class was noticed since, or that left the graph."""
    times = scope.noticed
    blocks = later_rows.labels_noticed(reader.connection, reader.project, times, None)
    return {label.node_key for _, labels in blocks for label in labels} | scope.gone


def touched_runs(reader: RecordReader, scope: Scope) -> set[int]:
    """Return the runs that later entries are about, by themselves or by a node of theirs."""
    keys = touched_nodes(reader, scope)
    by_run = later_rows.predictions_of_nodes(reader.connection, reader.project, keys)
    return {*scope.runs, *by_run}


def find_touched_edits(
    reader: RecordReader, record: AuditRecord, keys: Collection[str], left_out: Collection[int]
) -> Iterator[str]:
    """Yield what of some nodes does not follow from their set and their label rows.

    Nodes of runs that are compared whole are `left_out`.
    """
    for part in split(sorted(keys)):
        by_run = later_rows.predictions_of_nodes(reader.connection, reader.project, part)
        labels = later_rows.labels_of_nodes(reader.connection, reader.project, part)
        further = later_rows.further_sets_of_nodes(reader.connection, reader.project, part)
        listed = later_rows.worklist_of_nodes(reader.connection, reader.project, part)
        for seq, run in sealed_runs(record, by_run.keys() - set(left_out)).items():
            rows = by_run[seq]
            yield from find_row_edits(seq, rows, labels, run)
            stored = further.get(seq, [])
            if stored:
                yield from find_further_edits(seq, stored, rows, labels, run)
            entries = [entry for row in rows for entry in listed.get(row["node_key"], ())]
            in_worklist = rows if run.removed is None else []
            yield from find_entry_edits(seq, in_worklist, run.classes, entries)
        shadows = later_rows.shadow_sets_of_nodes(reader.connection, reader.project, part)
        yield from find_shadow_judgement_edits(shadows)
