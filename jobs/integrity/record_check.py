"""The audit store against its chain, row by row: every edit by its table, key and column.

An entry of the chain can't be changed without its key; a row can. What an entry holds or can be
recomputed from it is compared. Entries of older versions seal less: what they don't hold is
compared where it follows from something else, and left alone where it does not.

    with record_snapshot(store, project, key_source) as reader:
        problems = list(find_edits(reader, reader.record()))
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from ringfence.connector.records import NoticedLabel, Prediction
from ringfence.connector.store.audit_chain.basis.coverage_rows import find_coverage_differences
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader, Row
from ringfence.connector.store.audit_chain.run_comparison import changed_run_columns
from ringfence.connector.store.groups import groups_digest, groups_of_run
from ringfence.connector.store.labels import label_rows_digest, labels_digest
from ringfence.connector.store.models import member_digests
from ringfence.connector.store.predictions import payload_digest
from ringfence.jobs.integrity.activation_check import find_activation_edits, find_comparison_edits
from ringfence.jobs.integrity.checkpoint.progress_file import RunTurn
from ringfence.jobs.integrity.correction_check import find_correction_edits
from ringfence.jobs.integrity.derivation.monitor_input_check import find_monitor_input_edits
from ringfence.jobs.integrity.first_seen_check import find_first_seen_edits
from ringfence.jobs.integrity.joined_check import find_joined_edits
from ringfence.jobs.integrity.keyless_check import (
    find_keyless_edits,
    find_salt_edits,
    find_signing_edits,
)
from ringfence.jobs.integrity.prediction_check import find_prediction_edits
from ringfence.jobs.integrity.removal_check import find_removal_edits
from ringfence.jobs.integrity.shadow_check import find_shadow_edits
from ringfence.jobs.integrity.structure.number_check import find_number_edits
from ringfence.jobs.integrity.structure.owner_check import find_unowned_rows
from ringfence.jobs.integrity.structure.schema_check import find_schema_edits
from ringfence.jobs.integrity.worklist_check import find_mark_edits

FIRING = "firing"


def find_edits(
    reader: RecordReader, record: AuditRecord, turn: RunTurn | None = None
) -> Iterator[str]:
    """Yield everything in the store that is not as the chain has it.

    Predictions of runs that `turn` has done already are left out.
    """
    yield from find_edits_of_shown_rows(record)
    checks: dict[str, Callable[[RecordReader, AuditRecord], Iterator[str]]] = {
        "the schema": find_schema_edits,
        "rows without an owner": find_unowned_rows,
        "members": find_member_edits,
        "corrections": find_correction_edits,
        "joined nodes": find_joined_edits,
        "first sightings": find_first_seen_edits,
        "labels": _label_edits,
        "groups": find_group_edits,
        "rescores": find_rescore_edits,
        "marks of the worklist": find_mark_edits,
        "removed details": find_removal_edits,
        "predictions": partial(find_prediction_edits, turn=turn),
        "what monitors were fed with": find_monitor_input_edits,
        "shadow sets": find_shadow_edits,
        "the salt of node keys": find_salt_edits,
    }
    for subject, check in checks.items():
        yield from run_check(subject, partial(check, reader, record))


def find_edits_of_shown_rows(record: AuditRecord) -> Iterator[str]:
    """Yield the edits of the rows that pages show; none of them is a row per node."""
    if record.first_broken is not None:
        yield (
            f"the chain is broken at entry {record.first_broken}: it was edited, or the key is "
            f"another one{record.rotation}"
        )
    checks = {
        "runs": _run_edits,
        "the lease": _lease_edits,
        "the audit's mark": _mark_edits,
        "models": _model_edits,
        "the versions in use": find_activation_edits,
        "comparisons": find_comparison_edits,
        "coverage rows": _coverage_edits,
        "alarm events": _event_edits,
        "alarms": _alarm_edits,
        "numbers of rows": find_number_edits,
        "the keyless chain": find_keyless_edits,
        "signing keys": find_signing_edits,
    }
    for subject, check in checks.items():
        yield from run_check(subject, partial(check, record))


def run_check(subject: str, check: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Run a check; an entry or row that lost its form was edited, and ends this check alone."""
    try:
        yield from check()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        yield f"{subject} can't be compared further with the chain: {type(error).__name__} {error}"


def _run_edits(record: AuditRecord) -> Iterator[str]:
    recorded = {body["run"]["seq"]: body for body in record.bodies("decided")}
    applied = {body["seq"]: body["applied_ns"] for body in record.bodies("applied")}
    last = max(recorded, default=0)
    for seq in sorted({*recorded, *record.run_columns}):
        row = record.run_columns.get(seq)
        if row is None:
            yield f"run {seq} was decided, but its row is gone"
        elif seq not in recorded:
            yield f"run {seq} stands in SQL, but was never decided"
        else:
            if changed := changed_run_columns(row, recorded[seq]):
                yield f"run {seq}: {', '.join(changed)} changed after the decision"
            yield from _state_edits(seq, row, applied, "token" in recorded[seq], seq == last)


def _state_edits(
    seq: int, row: Row, applied: Mapping[int, int], sealed: bool, newest: bool
) -> Iterator[str]:
    """Compare a run's state; runs of older versions (not `sealed`) have no entry when applied."""
    if seq in applied:
        if row["state"] != "applied":
            yield f"run {seq}: state is {row['state']!r}, but the run was applied"
        if row["applied_ns"] != applied[seq]:
            yield f"run {seq}: applied_ns changed after it was applied"
    elif row["state"] == "applied" and sealed:
        yield f"run {seq}: state is 'applied', but the run was never recorded as applied"
    elif row["state"] != "applied" and not newest:
        yield f"run {seq}: state is {row['state']!r}, though later runs were decided"


def _lease_edits(record: AuditRecord) -> Iterator[str]:
    decided = [body["run"] for body in record.bodies("decided")]
    if record.lease is None:
        if decided:
            yield "lease: the project's row is gone"
        return
    last = max(decided, key=lambda run: run["seq"], default=None)
    expected = {
        "watermark_ns": last["watermark_to_ns"] if last else None,
        "next_seq": last["seq"] + 1 if last else 1,
    }
    for name, value in expected.items():
        if record.lease[name] != value:
            yield f"lease: {name} is {record.lease[name]}, but the last run left {value}"


def _mark_edits(record: AuditRecord) -> Iterator[str]:
    """Compare how far audits had come; older versions sealed none of it."""
    sealed = list(record.bodies("marked"))
    if sealed and record.mark is None:
        yield "audit_mark: the project's row is gone"
    elif sealed and record.mark is not None:
        for name, value in record.mark.items():
            if sealed[-1].get(name) != value:
                left = sealed[-1].get(name)
                yield f"audit_mark: {name} is {value}, but the last audit left {left}"


def _model_edits(record: AuditRecord) -> Iterator[str]:
    recorded = {body["version"]: body for body in record.bodies("trained")}
    for version in sorted({*recorded, *record.models}):
        row = record.models.get(version)
        if row is None:
            yield f"model {version} was trained, but its row is gone"
        elif version not in recorded:
            yield f"model {version} stands in SQL, but was never trained"
        else:
            digest = hashlib.sha256(row["manifest"].encode()).hexdigest()
            if recorded[version]["manifest_sha256"] != digest:
                yield f"model {version}: its manifest is not the one that was recorded"
            if recorded[version].get("trained_ns", row["trained_ns"]) != row["trained_ns"]:
                yield f"model {version}: trained_ns changed after the training"
    by_time = sorted(record.models, key=lambda version: record.models[version]["trained_ns"])
    if [version for version in by_time if version in recorded] != [
        version for version in recorded if version in record.models
    ]:
        yield "model: trained_ns gives another order of the versions than the chain"


def find_member_edits(
    reader: RecordReader, record: AuditRecord, versions: Collection[str] | None = None
) -> Iterator[str]:
    """Yield the members that are not as the chain has them, of all versions or of some."""
    recorded = {body["version"]: body for body in record.bodies("trained")}
    for version in sorted(reader.member_versions() - set(recorded) if versions is None else ()):
        yield f"member: rows of model {version}, which was never trained"
    for version, body in recorded.items():
        if versions is not None and version not in versions:
            continue
        members = reader.members(version)
        if len(members) != body["members"]:
            yield f"member of {version}: {len(members)} rows, but {body['members']} were recorded"
        sealed = body.get("member_digests")
        if sealed is not None:
            digests = member_digests(members)
            for role in sorted({*sealed, *digests}):
                if sealed.get(role) != digests.get(role):
                    yield (
                        f"member of {version}: the {role} nodes or their class_index are not "
                        "those that were recorded"
                    )
        elif version in record.models:
            yield from _role_count_edits(version, record.models[version], members)


def _role_count_edits(version: str, model: Row, members: Iterable[Any]) -> Iterator[str]:
    """Compare counts alone: models of older versions sealed no digest of their members."""
    counts = Counter(member.role for member in members)
    for role, count in json.loads(model["manifest"]).get("counts", {}).items():
        if counts[role] != count:
            yield f"member of {version}: {counts[role]} {role} nodes, the manifest has {count}"


def _coverage_edits(record: AuditRecord) -> Iterator[str]:
    alphas = {seq: row["alpha"] for seq, row in record.run_columns.items()}
    yield from find_coverage_differences(record.bodies("audited"), record.coverage, alphas)


def _label_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    yield from find_label_edits(sealed_label_blocks(record), reader.label_blocks())


def sealed_label_blocks(record: AuditRecord) -> dict[int, list[Mapping[str, Any]]]:
    """Return the entries that seal label rows, by the time at which these were noticed."""
    recorded: dict[int, list[Mapping[str, Any]]] = {}
    for body in record.bodies("classes"):
        recorded.setdefault(body["noticed_ns"], []).append(body)
    return recorded


def find_label_edits(
    recorded: dict[int, list[Mapping[str, Any]]],
    blocks: Iterable[tuple[int, list[NoticedLabel]]],
) -> Iterator[str]:
    """Yield the blocks of label rows that are not as their entries have them."""
    for noticed_ns, labels in blocks:
        bodies = recorded.pop(noticed_ns, None)
        if bodies is None:
            keys = ", ".join(sorted(label.node_key for label in labels)[:5])
            yield f"label noticed at {noticed_ns}: rows that no audit recorded ({keys})"
        else:
            yield from _block_edits(noticed_ns, labels, bodies)
    for noticed_ns, bodies in recorded.items():
        nodes = sum(body["nodes"] for body in bodies)
        yield f"label noticed at {noticed_ns}: all {nodes} rows are gone"


def _block_edits(
    noticed_ns: int, labels: list[NoticedLabel], bodies: list[Mapping[str, Any]]
) -> Iterator[str]:
    where, nodes = f"label noticed at {noticed_ns}", sum(body["nodes"] for body in bodies)
    if len(labels) != nodes:
        yield f"{where}: {len(labels)} rows, but {nodes} were recorded"
    elif len(bodies) > 1:  # older versions could write two blocks in one tick of the clock
        return
    elif labels_digest(labels) != bodies[0]["classes"]:
        yield f"{where}: node_key or label of some of {nodes} rows changed"
    elif bodies[0].get("rows", "") not in ("", label_rows_digest(labels)):
        yield f"{where}: happened_ns, covered, covered_naive or unseen of some row changed"


def find_group_edits(
    reader: RecordReader, record: AuditRecord, seqs: Collection[int] | None = None
) -> Iterator[str]:
    """Yield the runs whose groups are not as the chain has them, of all runs or of some."""
    recorded = {body["seq"]: body["groups"] for body in record.bodies("grouped")}
    marks = (body["grouped_seq"] for body in record.bodies("marked"))
    done = max(marks, default=0)  # the groups of later runs are not whole yet
    nobody = groups_digest([])
    for body in record.bodies("decided"):
        seq = body["run"]["seq"]
        if seqs is not None and seq not in seqs:
            continue
        known = seq in recorded or (seq <= done and "degrees" in body)  # older versions: none
        groups = groups_of_run(reader.connection, reader.project, seq) if known else []
        if known and groups_digest(groups) != recorded.get(seq, nobody):
            yield f"grouping: the groups of run {seq} are not those that were recorded"


def find_rescore_edits(reader: RecordReader, record: AuditRecord) -> Iterator[str]:
    """Yield the later evaluations that are not as the chain has them."""
    recorded, blocks = list(record.bodies("rescored")), reader.rescore_blocks()
    if len(recorded) != len(blocks):
        yield f"rescore: {len(blocks)} later evaluations, but {len(recorded)} were recorded"
        return
    for body, rows in zip(recorded, blocks, strict=True):
        names = {"reason": "reason", "model": "model", "alpha": "alpha", "rescored_ns": "at_ns"}
        changed = {
            column
            for name, column in names.items()
            for row in rows
            if name in body and row[column] != body[name]
        }
        if payload_digest([_prediction(row) for row in rows]) != body["predictions"]:
            changed.add("sets")
        if changed:
            yield f"rescore at {rows[0]['at_ns']}: {', '.join(sorted(changed))} changed"


def _prediction(row: Row) -> Prediction:
    classes, p_values, scores = (
        tuple(json.loads(row[name])) for name in ("classes", "p_values", "scores")
    )
    return Prediction(row["node_key"], classes, p_values, scores, 0)


def _event_edits(record: AuditRecord) -> Iterator[str]:
    bodies = list(record.bodies("alarm"))
    sealed = {body["event"]: body for body in bodies if "event" in body}
    first = min(sealed, default=None)
    names = {"at_ns": "event_ns", "rule": "rule", "was": "was", "state": "state", "words": "words"}
    for n in sorted({*sealed, *record.alarm_events}):
        row = record.alarm_events.get(n)
        if row is None:
            yield f"alarm_event {n}: the row is gone"
        elif n in sealed:
            if changed := [col for col, name in names.items() if row[col] != sealed[n][name]]:
                yield f"alarm_event {n}: {', '.join(changed)} changed"
        elif first is not None and n > first:
            yield f"alarm_event {n}: the row was never recorded by an audit"
    older = [body for body in bodies if "event" not in body]
    # older versions sealed the events that begin or end a firing alarm, without their number
    rows = [
        row
        for n, row in sorted(record.alarm_events.items())
        if (first is None or n < first) and FIRING in (row["was"], row["state"])
    ]
    facts = ("rule", "was", "state", "words")
    if [[body[f] for f in facts] for body in older] != [[row[f] for f in facts] for row in rows]:
        yield "alarm_event: the alarms that began or ended are not those that were recorded"


def _alarm_edits(record: AuditRecord) -> Iterator[str]:
    sealed = [body["states"] for body in record.bodies("alarms")]
    if not sealed:
        yield from _firing_edits(record)
        return
    for rule in sorted({*sealed[-1], *record.alarms}):
        row = record.alarms.get(rule)
        if row is None:
            yield f"alarm {rule}: the row is gone"
        elif rule not in sealed[-1]:
            yield f"alarm {rule}: the row was never recorded by an audit"
        else:
            columns = zip(("state", "since_ns", "words"), sealed[-1][rule], strict=True)
            if changed := [name for name, value in columns if row[name] != value]:
                yield f"alarm {rule}: {', '.join(changed)} changed after the audit"


def _firing_edits(record: AuditRecord) -> Iterator[str]:
    """Compare firing alarms alone: older versions sealed no other state."""
    last = {body["rule"]: body["state"] for body in record.bodies("alarm")}
    for rule in sorted({*last, *record.alarms}):
        row = record.alarms.get(rule)
        if (last.get(rule) == FIRING) != (row is not None and row["state"] == FIRING):
            yield f"alarm {rule}: its state is not the one that was recorded"
