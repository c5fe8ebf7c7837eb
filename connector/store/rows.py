"""Between SQL rows and records: the one place that knows which columns hold JSON text.

`run.notes` is written with json.dumps' own spaces and escapes, every other JSON column in the
canonical form of `dumps`. The audit chain holds these texts as they stand in SQL, and
`ringfence verify` compares the two, so neither form may change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Row

from ringfence.connector.alarm_records import AlarmEvent, AlarmState
from ringfence.connector.records import (
    UNREADABLE,
    AuditMark,
    ChainEntry,
    CoverageRow,
    Prediction,
    Run,
    RunFacts,
    StoredCoverage,
    StoredPrediction,
    Threshold,
)
from ringfence.connector.store.engine import dumps
from ringfence.connector.store.retention.kept_detail import p_values_of, scores_of
from ringfence.connector.store.tables import coverage, prediction

RUN_JSON = ("calibration_scores", "watch", "alphas", "levels", "shift", "lists")
"""Columns of the table `run` that hold JSON in the canonical form, or NULL."""

RUN_FACTS = tuple(field.name for field in fields(RunFacts))
COVERAGE = tuple(field.name for field in fields(CoverageRow))
PREDICTION = (
    prediction.c.node_key, prediction.c.classes, prediction.c.p_values, prediction.c.scores,
    prediction.c.degree, prediction.c.band, prediction.c.project, prediction.c.seq,
    prediction.c.in_graph, prediction.c.label, prediction.c.labelled_ns, prediction.c.covered,
    prediction.c.covered_naive, prediction.c.unseen, prediction.c.created_ns,
    prediction.c.evidence, prediction.c.sampled, prediction.c.lists,
)  # fmt: skip
"""The columns that `prediction_from_row` takes, in its order."""

ColumnValues = dict[str, Any]
"""Values of a table's columns by name, as SQLAlchemy takes and gives them."""

_decode = json.JSONDecoder().decode  # json.loads without its checks for bytes and options


def run_columns(facts: RunFacts) -> ColumnValues:
    """Return what a decided run writes: the columns of its facts, JSON as text."""
    values = {name: getattr(facts, name) for name in RUN_FACTS}
    values["notes"] = json.dumps(facts.notes)
    values["timings"] = "{}"
    for name in RUN_JSON:
        values[name] = None if values[name] is None else dumps(values[name])
    return values


def run_from_row(row: Row[Any]) -> Run:
    """Return a row of the table `run` as a record."""
    values = row._asdict()
    values["notes"] = tuple(json.loads(values["notes"]))
    values["timings"] = json.loads(values["timings"])
    for name in RUN_JSON:
        values[name] = None if values[name] is None else json.loads(values[name])
    for name in ("calibration_scores", "alphas"):
        values[name] = None if values[name] is None else tuple(values[name])
    return Run(**values)


def threshold_columns(project: str, seq: int, threshold_: Threshold) -> ColumnValues:
    """Return the columns of a threshold of a run."""
    values = {field.name: getattr(threshold_, field.name) for field in fields(Threshold)}
    return {"project": project, "seq": seq, **values, "class": values.pop("class_")}


def threshold_from_row(row: Row[Any]) -> Threshold:
    """Return a row of the table `threshold` as a record."""
    values = row._asdict()
    values["class_"] = values.pop("class")
    return Threshold(**{field.name: values[field.name] for field in fields(Threshold)})


def set_columns(decided: Prediction) -> dict[str, str]:
    """Return classes, p-values and scores as the JSON text of their columns."""
    return {
        "classes": dumps(decided.classes),
        "p_values": dumps(decided.p_values),
        "scores": dumps(decided.scores),
    }


def prediction_from_row(row: Sequence[Any]) -> StoredPrediction:
    """Return a row of the columns `PREDICTION` as a record.

    Where retention removed details, p-values that are gone are NaN, and there are no scores.
    """
    (
        node_key, classes, p_values, scores, degree, band, project, seq, in_graph, label,
        labelled_ns, covered, covered_naive, unseen, created_ns, evidence, sampled, lists,
    ) = row  # fmt: skip
    return StoredPrediction(
        node_key,
        tuple(_decode(classes)),
        p_values_of(p_values),
        scores_of(scores),
        degree,
        band,
        created_ns,
        evidence,
        project=project,
        seq=seq,
        in_graph=in_graph,
        label=label,
        labelled_ns=labelled_ns,
        covered=covered,
        covered_naive=covered_naive,
        unseen=unseen,
        sampled=sampled,
        lists=_decode(lists) if lists else {},
    )


def coverage_columns(row: CoverageRow) -> ColumnValues:
    """Return the columns of a coverage row but for project and time of the audit."""
    return {name: getattr(row, name) for name in COVERAGE}


def stored_coverage_columns(row: StoredCoverage) -> ColumnValues:
    """Return all columns of a coverage row, in the order of the table."""
    return {column.name: getattr(row, column.name) for column in coverage.c}


def coverage_from_row(row: Row[Any]) -> StoredCoverage:
    """Return a row of the table `coverage` as a record."""
    return StoredCoverage(**row._asdict())


def audit_mark_from_row(row: Row[Any]) -> AuditMark:
    """Return a row of the table `audit_mark` as a record."""
    advice: Mapping[str, Any] | None = json.loads(row.advice) if row.advice else None
    return AuditMark(row.audited_ns, row.labels_ns, row.grouped_seq, advice)


def alarm_from_row(row: Row[Any]) -> AlarmState:
    """Return a row of the table `alarm` as a record."""
    return AlarmState(row.rule, row.state, row.words, row.since_ns)


def alarm_event_from_row(row: Row[Any]) -> AlarmEvent:
    """Return a row of the table `alarm_event` as a record."""
    channels = tuple(row.delivered.split())
    return AlarmEvent(row.n, row.at_ns, row.rule, row.was, row.state, row.words, channels)


def chain_entry_from_row(row: Row[Any]) -> ChainEntry:
    """Return a row of the table `audit` as a record; a body that was damaged is UNREADABLE."""
    try:
        facts = json.loads(row.body)
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or not isinstance(facts.get("kind"), str):
        facts = {"kind": UNREADABLE}
    return ChainEntry(**row._asdict(), facts=facts)
