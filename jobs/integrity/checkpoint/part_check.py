"""The audit store against its chain since a checkpoint, and a sample of what is older.

Compared whole, whenever it was written: the chain, the schema, and every table that has no row per
node (runs, models, coverage, alarms, marks, …), with corrections and later
evaluations. Of the tables with a row per node: what entries since the checkpoint are about, and the
drawn runs with an equal share of the blocks of label rows, of first sightings and of members.

Left to the full verification: rows that neither a run nor an entry names (of nodes that were never
evaluated, or under a time between two sealed ones), values of another type than their column in
tables without a run's number, and entries derived again from those before them, but for sets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader
from ringfence.connector.store.checkpoint import later_rows
from ringfence.connector.store.first_seen import KIND as SEEN
from ringfence.connector.store.schema.differences import (
    describe_odd_values,
    find_odd_values,
    find_schema_differences,
)
from ringfence.jobs.integrity.checkpoint.draw import Sample, pick
from ringfence.jobs.integrity.checkpoint.scope import Scope
from ringfence.jobs.integrity.checkpoint.touched_nodes import find_touched_edits, touched_nodes
from ringfence.jobs.integrity.correction_check import find_correction_edits
from ringfence.jobs.integrity.derivation.monitor_input_check import find_monitor_input_edits
from ringfence.jobs.integrity.first_seen_check import find_first_seen_edits
from ringfence.jobs.integrity.joined_check import (
    describe_joined_consulted,
    describe_joined_members,
    find_ancestor_edits,
    find_joined_edits_of,
)
from ringfence.jobs.integrity.keyless_check import find_salt_edits
from ringfence.jobs.integrity.prediction_check import find_run_edits
from ringfence.jobs.integrity.record_check import (
    find_edits_of_shown_rows,
    find_group_edits,
    find_label_edits,
    find_member_edits,
    find_rescore_edits,
    run_check,
    sealed_label_blocks,
)
from ringfence.jobs.integrity.removal_check import find_removal_edits
from ringfence.jobs.integrity.shadow_check import find_shadow_record_edits, find_shadow_set_edits
from ringfence.jobs.integrity.worklist_check import find_mark_edits

ROWS_PER_NODE = frozenset({
    "prediction", "label", "grouping", "further_set", "threshold", "joined", "monitor_input",
    "worklist_entry", "shadow_set", "first_seen", "member", "audit",
})  # fmt: skip
"""Tables whose values are not all read for their types; those with a run's number in part."""


def find_part_edits(
    reader: RecordReader, record: AuditRecord, scope: Scope, sample: Sample
) -> Iterator[str]:
    """Yield what is not as the chain has it in what is new and in what was drawn."""
    yield from find_edits_of_shown_rows(record)
    runs = scope.runs | frozenset(sample.runs)
    checks: dict[str, Callable[[], Iterator[str]]] = {
        "the schema": partial(_schema_edits, reader, runs),
        "members": partial(_member_edits, reader, record, scope, sample),
        "corrections": partial(find_correction_edits, reader, record),
        "joined nodes": partial(_joined_edits, reader, record, scope, runs),
        "first sightings": partial(_first_seen_edits, reader, record, scope, sample),
        "labels": partial(_label_edits, reader, record, scope, sample),
        "groups": partial(find_group_edits, reader, record, runs | scope.grouped),
        "rescores": partial(find_rescore_edits, reader, record),
        "marks of the worklist": partial(find_mark_edits, reader, record),
        "removed details": partial(find_removal_edits, reader, record),
        "rows without a run": partial(_stray_edits, reader, scope),
        "predictions": partial(find_run_edits, reader, record, runs),
        "nodes of older runs": partial(_touched_edits, reader, record, scope, runs),
        "what monitors were fed with": partial(find_monitor_input_edits, reader, record, runs),
        "shadow sets": partial(_shadow_edits, reader, record, scope, runs),
        "the salt of node keys": partial(find_salt_edits, reader, record),
    }
    for subject, check in checks.items():
        yield from run_check(subject, check)


def _schema_edits(reader: RecordReader, runs: Collection[int]) -> Iterator[str]:
    differences = list(find_schema_differences(reader.connection))
    yield from differences
    if differences:
        return
    yield from find_odd_values(reader.connection, ROWS_PER_NODE)
    odd = later_rows.find_odd_values_of_runs(reader.connection, reader.project, sorted(runs))
    for (table, column), count in odd.items():
        yield describe_odd_values(table, column, count)


def _stray_edits(reader: RecordReader, scope: Scope) -> Iterator[str]:
    counts = later_rows.count_stray_rows(reader.connection, reader.project, scope.last)
    for (table, seq), count in sorted(counts.items()):
        yield f"{table}: {count} rows of run {seq}, which was never decided"


def _member_edits(
    reader: RecordReader, record: AuditRecord, scope: Scope, sample: Sample
) -> Iterator[str]:
    versions = [body["version"] for body in record.bodies("trained")]
    older = [n for n, version in enumerate(versions) if version not in scope.trained]
    drawn = {versions[n] for n in _pick(older, sample, reader.key, "members")}
    yield from find_member_edits(reader, record, scope.trained | drawn)


def _joined_edits(
    reader: RecordReader, record: AuditRecord, scope: Scope, runs: Collection[int]
) -> Iterator[str]:
    yield from find_joined_edits_of(reader, record, runs)
    at = reader.connection, reader.project, scope.runs
    for version, role, nodes in later_rows.joined_members_of_runs(*at):
        yield describe_joined_members(version, role, nodes)
    for version, nodes in later_rows.joined_consulted_of_runs(*at):
        yield describe_joined_consulted(version, nodes)
    if scope.runs or scope.trained:
        yield from find_ancestor_edits(reader, record)


def _first_seen_edits(
    reader: RecordReader, record: AuditRecord, scope: Scope, sample: Sample
) -> Iterator[str]:
    older = sorted({body["seen_ns"] for body in record.bodies(SEEN)} - scope.seen)
    times = scope.seen | set(_pick(older, sample, reader.key, SEEN))
    if times:
        yield from find_first_seen_edits(reader, record, times)


def _label_edits(
    reader: RecordReader, record: AuditRecord, scope: Scope, sample: Sample
) -> Iterator[str]:
    sealed = sealed_label_blocks(record)
    drawn = _pick(sorted(sealed.keys() - scope.noticed), sample, reader.key, "labels")
    times, newest = scope.noticed | set(drawn), max(sealed, default=0)
    for seq in scope.runs | set(sample.runs):
        noticed = later_rows.times_of_run(reader.connection, reader.project, seq)
        times |= noticed - sealed.keys()
    blocks = later_rows.labels_noticed(reader.connection, reader.project, times, newest)
    chosen = {noticed_ns: sealed[noticed_ns] for noticed_ns in sorted(times & sealed.keys())}
    yield from find_label_edits(chosen, blocks)


def _touched_edits(
    reader: RecordReader, record: AuditRecord, scope: Scope, runs: Collection[int]
) -> Iterator[str]:
    yield from find_touched_edits(reader, record, touched_nodes(reader, scope), runs)


def _shadow_edits(
    reader: RecordReader, record: AuditRecord, scope: Scope, runs: Collection[int]
) -> Iterator[str]:
    yield from find_shadow_record_edits(reader, record)
    seqs = {*runs, *(seq for _, seq in scope.shadows)}
    yield from find_shadow_set_edits(reader, record, seqs)


def _pick(units: list[Any], sample: Sample, key: bytes, subject: str) -> list[Any]:
    """Draw from other blocks than runs at least the share in which runs were drawn."""
    return pick(units, sample.share(len(units)), key, f"{subject}\n{sample.nonce}")
