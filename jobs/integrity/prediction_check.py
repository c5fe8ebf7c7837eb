"""Predictions against the chain: what was decided, and what the label rows say of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.connector.prediction_table import FurtherSet
from ringfence.connector.records import KnownClass, NoticedLabel, Prediction
from ringfence.connector.store.audit_chain.integrity import AuditRecord, RecordReader, Row
from ringfence.connector.store.labels import OpenPrediction, check_label, further_coverage
from ringfence.connector.store.predictions import (
    band_digest,
    degree_digest,
    identity_digest,
    payload_digest,
)
from ringfence.connector.store.retention.kept_detail import p_values_of, scores_of
from ringfence.connector.store.retention.removals import KIND as REMOVED
from ringfence.connector.store.retention.removals import kept_digest
from ringfence.connector.store.thresholds.recorded import (
    further_digest,
    read_thresholds,
    thresholds_digest,
)
from ringfence.jobs.integrity.checkpoint.progress_file import RunTurn
from ringfence.jobs.integrity.sample_check import find_sample_edits
from ringfence.jobs.integrity.worklist_check import (
    find_entry_edits,
    find_list_edits,
    find_orphans,
)

MAX_LISTED_ROWS = 20  # of one kind in one run; of the others only the number is listed


@dataclass(frozen=True, slots=True)
class SealedRun:
    """What the chain has of a run: its facts, the digests, and the model's classes.

    `classes` is None where the manifest can't be read. `sealed` is False for runs of versions that
    sealed neither degrees nor nodes that left the graph. `removed` is what the chain says of the
    details that retention removed, None where they must all be there.
    """

    body: Mapping[str, Any]
    classes: Sequence[str] | None
    gone: frozenset[str]
    removed: Mapping[str, Any] | None = None

    @property
    def sealed(self) -> bool:
        """Whether degrees and nodes that left the graph are sealed."""
        return "degrees" in self.body

    @property
    def facts(self) -> Mapping[str, Any]:
        """The run's columns as they were decided."""
        return self.body["run"]  # type: ignore[no-any-return]


def find_prediction_edits(
    reader: RecordReader, record: AuditRecord, turn: RunTurn | None = None
) -> Iterator[str]:
    """Yield every prediction that is not as it was decided, or not as its label rows say.

    Runs that `turn` has done already are left out.
    """
    decided = {body["run"]["seq"]: body for body in record.bodies("decided")}
    for seq, count in sorted(reader.count_predictions().items()):
        if seq not in decided:
            yield f"prediction: {count} rows of run {seq}, which was never decided"
    for seq in sorted(reader.runs_with_thresholds() - set(decided)):
        yield f"threshold or further_set: rows of run {seq}, which was never decided"
    left = decided.keys() if turn is None else turn.left(decided)
    yield from find_run_edits(reader, record, left, turn)
    yield from find_orphans(reader)


def find_run_edits(
    reader: RecordReader,
    record: AuditRecord,
    seqs: Collection[int],
    turn: RunTurn | None = None,
) -> Iterator[str]:
    """Do what `find_prediction_edits` does for some runs alone; `turn` hears how each came out."""
    for seq, run in sealed_runs(record, seqs).items():
        clean = True
        for edit in _edits_of_run(reader, seq, run):
            clean = False
            yield edit
        if turn is not None:
            turn.end(seq, clean=clean)


def sealed_runs(record: AuditRecord, seqs: Collection[int]) -> dict[int, SealedRun]:
    """Return what the chain has of some runs, in its order."""
    gone = frozenset(
        key for kind in ("applied", "gone") for body in record.bodies(kind) for key in body["gone"]
    )
    removed = {
        removal["seq"]: removal for body in record.bodies(REMOVED) for removal in body["runs"]
    }
    classes = {version: _classes(record, version) for version in record.models}
    return {
        body["run"]["seq"]: SealedRun(
            body, classes.get(body["run"]["model"]), gone, removed.get(body["run"]["seq"])
        )
        for body in record.bodies("decided")
        if body["run"]["seq"] in seqs
    }


def _edits_of_run(reader: RecordReader, seq: int, run: SealedRun) -> Iterator[str]:
    rows, labels = reader.predictions(seq), reader.labels_of_run(seq)
    yield from _digest_edits(seq, rows, run)
    yield from find_sample_edits(seq, rows, run.body)
    yield from find_list_edits(seq, rows, run.body)
    yield from _threshold_edits(seq, reader, run)
    yield from find_row_edits(seq, rows, labels, run)
    yield from find_further_edits(seq, reader.further_sets(seq), rows, labels, run)
    in_worklist = rows if run.removed is None else []
    yield from find_entry_edits(seq, in_worklist, run.classes, reader.entries(seq))


def _classes(record: AuditRecord, version: str) -> Sequence[str] | None:
    try:
        return [str(name) for name in json.loads(record.models[version]["manifest"])["classes"]]
    except (KeyError, ValueError, TypeError):
        return None


def _digest_edits(seq: int, rows: Sequence[Row], run: SealedRun) -> Iterator[str]:
    if len(rows) != run.facts["n_evaluated"]:
        yield f"run {seq}: {len(rows)} predictions, but {run.facts['n_evaluated']} were decided"
    if run.removed is not None:
        yield from _kept_edits(seq, rows, run, run.removed)
        return
    try:
        stored = [_prediction(row) for row in rows]
    except (ValueError, TypeError):
        yield f"run {seq}: its predictions are not those that were decided (some can't be read)"
        return
    if payload_digest(stored) != run.body["predictions"]:
        yield (
            f"run {seq}: its predictions are not those that were decided (node_key, classes, "
            "p_values or scores of some rows)"
        )
    elif run.sealed and degree_digest(stored) != run.body["degrees"]:
        yield f"run {seq}: degree of some predictions is not the one that was decided"
    elif band_digest(stored) != run.body.get("bands", band_digest(stored)):
        yield f"run {seq}: band of some predictions is not the one that was decided"
    yield from _identity_edits(seq, stored, run)


def _identity_edits(seq: int, stored: Sequence[Prediction], run: SealedRun) -> Iterator[str]:
    """Compare what says which nodes were evaluated; runs of older versions have NULL there."""
    if "identities" in run.body:
        is_edited = identity_digest(stored) != run.body["identities"]
    else:
        is_edited = any(row.created_ns is not None or row.evidence is not None for row in stored)
    if is_edited:
        yield f"run {seq}: created_ns or evidence of some predictions is not what was decided"


def _kept_edits(
    seq: int, rows: Sequence[Row], run: SealedRun, removed: Mapping[str, Any]
) -> Iterator[str]:
    """Compare what retention left of a run's predictions."""
    if removed["removed"] != run.body["predictions"]:
        yield f"run {seq}: retention removed other predictions than were decided"
    if kept_digest(rows) != removed["kept"]:
        yield (
            f"run {seq}: its predictions are not those that retention left (node_key, classes, "
            "p_values or scores of some rows)"
        )
    plain = [Prediction(row["node_key"], (), (0,), (), *_columns_kept(row)) for row in rows]
    if run.sealed and degree_digest(plain) != run.body["degrees"]:
        yield f"run {seq}: degree of some predictions is not the one that was decided"
    elif band_digest(plain) != run.body.get("bands", band_digest(plain)):
        yield f"run {seq}: band of some predictions is not the one that was decided"
    yield from _identity_edits(seq, plain, run)


def _threshold_edits(seq: int, reader: RecordReader, run: SealedRun) -> Iterator[str]:
    """Compare thresholds and further sets; runs of older versions have neither."""
    thresholds = read_thresholds(reader.connection, reader.project, seq)
    if thresholds_digest(thresholds) != run.body.get("thresholds", thresholds_digest([])):
        yield f"threshold: the thresholds of run {seq} are not those that were decided"
    rows = reader.further_sets(seq)
    sets = [FurtherSet(row["node_key"], row["alpha"], row["size"]) for row in rows]
    if further_digest(sets) != run.body.get("further_sets", further_digest([])):
        yield f"further_set: the sets of run {seq} at further alphas are not those decided"


def find_further_edits(
    seq: int,
    further: Sequence[Row],
    rows: Sequence[Row],
    labels: Mapping[str, list[NoticedLabel]],
    run: SealedRun,
) -> Iterator[str]:
    """Judge the newest class of each node again by its sets at the alphas after the first."""
    stored = {(row["node_key"], row["alpha"]): row["covered"] for row in further}
    if not stored or run.classes is None:
        return
    for row in rows:
        noticed = labels.get(row["node_key"], [])
        held: dict[float, bool] = {}
        if noticed:
            evaluated = _open_prediction(row, run)
            held = dict(further_coverage(evaluated, noticed[-1].label, run.classes))
        for alpha in json.loads(run.facts["alphas"])[1:]:
            if stored.get((row["node_key"], alpha)) != held.get(alpha):
                yield (
                    f"further_set {row['node_key']} (run {seq}): covered at alpha {alpha:g} is not "
                    "as recorded"
                )


def find_row_edits(
    seq: int, rows: Sequence[Row], labels: Mapping[str, list[NoticedLabel]], run: SealedRun
) -> Iterator[str]:
    """Yield columns of predictions that don't follow from their set and their label rows."""
    counts: Counter[str] = Counter()
    for row in sorted(rows, key=lambda row: str(row["node_key"])):
        for column in _edited_columns(row, labels.get(row["node_key"], []), run):
            counts[column] += 1
            if counts[column] <= MAX_LISTED_ROWS:
                yield f"prediction {row['node_key']} (run {seq}): {column} is not as recorded"
    for column, count in counts.items():
        if count > MAX_LISTED_ROWS:
            yield f"… and {count - MAX_LISTED_ROWS} more in run {seq}: {column}"


def _edited_columns(row: Row, labels: Sequence[NoticedLabel], run: SealedRun) -> Iterator[str]:
    """Yield the columns of a prediction that don't follow from its set and its label rows."""
    try:
        stored = _prediction(row) if run.removed is None else _kept_prediction(row)
    except (ValueError, TypeError, KeyError):
        yield "classes, p_values or scores"
        return
    if row["size"] != stored.size:
        yield "size"
    top_p = max((p for p in stored.p_values if p == p), default=None)  # NaN: removed
    if row["top_p"] != top_p and (run.sealed or row["top_p"] is not None):  # once there was none
        yield "top_p"
    listed = row["node_key"] in run.gone
    if (listed and row["in_graph"]) or (run.sealed and not listed and not row["in_graph"]):
        yield "in_graph"
    last = labels[-1] if labels else None
    expected = {
        "label": last.label if last else None,
        "labelled_ns": labels[0].noticed_ns if labels else None,
        "covered": last.covered if last else None,
        "covered_naive": last.covered_naive if last else None,
        "unseen": last.unseen if last else None,
    }
    yield from (name for name, value in expected.items() if row[name] != value)
    if run.classes is not None and len(run.classes) == len(stored.p_values):
        for noticed in labels:
            yield from _judgement_edits(row, noticed, run, run.classes)


def _judgement_edits(
    row: Row, noticed: NoticedLabel, run: SealedRun, classes: Sequence[str]
) -> Iterator[str]:
    """Judge a label again by the set that was decided."""
    again = check_label(_open_prediction(row, run), KnownClass(noticed.label), classes)
    for name in ("covered", "covered_naive", "unseen"):
        if getattr(again, name) != getattr(noticed, name):
            yield f"{name} in its label row of {noticed.noticed_ns}"


def _open_prediction(row: Row, run: SealedRun) -> OpenPrediction:
    return OpenPrediction(
        node_key=row["node_key"],
        classes=row["classes"],
        scores=row["scores"],
        label=None,
        threshold_naive=run.facts["threshold_naive"],
        model=run.facts["model"],
        p_values=row["p_values"],
        alphas=run.facts.get("alphas"),
        levels=run.facts.get("levels"),
    )


def _kept_prediction(row: Row) -> Prediction:
    """A prediction whose details retention removed."""
    kept = p_values_of(row["p_values"]), scores_of(row["scores"])
    return Prediction(row["node_key"], tuple(json.loads(row["classes"])), *kept, row["degree"])


def _prediction(row: Row) -> Prediction:
    classes, p_values, scores = (
        tuple(json.loads(row[name])) for name in ("classes", "p_values", "scores")
    )
    return Prediction(row["node_key"], classes, p_values, scores, *_columns_kept(row))


def _columns_kept(row: Row) -> tuple[Any, ...]:
    """What stands in a row besides its set, whatever retention removed."""
    return row["degree"], row["band"], row["created_ns"], row["evidence"]
