"""Remove the details of old runs: some runs in one transaction, sealed by one chain entry.

A run keeps its row, its thresholds, coverage and digests. Each of its nodes keeps its key, set,
size, degree, stratum, class and whether the class was covered: no node is evaluated twice, coverage
can be counted again at any time, and a class that changes later is judged as before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, bindparam, delete, insert, select, update

from ringfence.connector import fault_points
from ringfence.connector.errors import StoreError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import Prediction
from ringfence.connector.store import chain
from ringfence.connector.store.audit_chain.prediction_json import (
    Digests,
    PredictionJson,
    to_json_columns,
)
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store
from ringfence.connector.store.retention.kept_detail import as_matrix, kept_p_values, kept_scores
from ringfence.connector.store.retention.old_runs import OldRun
from ringfence.connector.store.retention.tables import removal
from ringfence.connector.store.rows import ColumnValues
from ringfence.connector.store.shadow.sets import sets_digest
from ringfence.connector.store.tables import prediction, shadow_set, worklist_entry
from ringfence.connector.store.writer import Writer

KIND = "removed"
COLUMNS = ("node_key", "classes", "p_values", "scores")
NO_P_VALUES = "[]"  # of a shadow set whose p-values were removed


@dataclass(frozen=True, slots=True)
class Removal:
    """A run whose details were removed; the columns of the table `removal` but for the project."""

    seq: int
    at_ns: int
    keep_days: float
    nodes: int
    entries: int
    shadow_sets: int
    freed: int


@dataclass(frozen=True, slots=True)
class _Slimmed:
    """What was done to a run's predictions: digests before and after, rows and characters gone."""

    removed: str
    kept: str
    nodes: int
    entries: int
    freed: int


@dataclass(frozen=True, slots=True)
class _SlimmedShadow:
    """What was done to a run's shadow sets of a version: digests before and after, characters."""

    sets: int
    removed: str
    kept: str
    freed: int

    def facts(self) -> JsonObject:
        """Return what the chain entry records of them."""
        return {"sets": self.sets, "removed": self.removed, "kept": self.kept}


def remove_details(
    writer: Writer,
    runs: Sequence[OldRun],
    sealed: Mapping[int, str],
    *,
    keep_days: float,
    before_ns: int,
) -> list[Removal]:
    """Remove the details of some runs in one transaction with its chain entry.

    `sealed` has the digest over each run's predictions as the chain has it: `StoreError` where the
    rows are others, before anything is removed.
    """
    project = writer.lease.project
    with writer.store.transaction() as connection:
        now = writer.begin(connection)
        done, facts = [], []
        for run in runs:
            slimmed = _slim_predictions(connection, project, run, sealed[run.seq])
            shadows = _slim_shadow_sets(connection, project, run.seq)
            sets = sum(shadow.sets for shadow in shadows.values())
            freed = slimmed.freed + sum(shadow.freed for shadow in shadows.values())
            removed = Removal(run.seq, now, keep_days, slimmed.nodes, slimmed.entries, sets, freed)
            done.append(removed)
            shadow_facts = {version: shadow.facts() for version, shadow in shadows.items()}
            digests: JsonObject = {
                "removed": slimmed.removed,
                "kept": slimmed.kept,
                "shadow": shadow_facts,
            }
            facts.append({**asdict(removed), **digests})
        connection.execute(
            insert(removal), [{"project": project, **asdict(removed)} for removed in done]
        )
        fault_points.reach("inside removal")
        body: JsonObject = {"keep_days": keep_days, "before_ns": before_ns, "runs": facts}
        chain.append(connection, project, writer.key, KIND, body)
    return done


def read_removals(connection: Connection, project: str) -> list[Removal]:
    """Return the runs whose details were removed, oldest run first."""
    query = removals_of(project).order_by(removal.c.seq)
    return [Removal(*row) for row in connection.execute(query)]


def removals_of(project: str) -> Select[Any]:
    """The columns of `Removal` of a project's runs."""
    columns = [removal.c[name] for name in Removal.__dataclass_fields__]
    return select(*columns).where(removal.c.project == project)


def removal_of(store: Store, project: str, seq: int) -> Removal | None:
    """Return when and how the details of a run were removed; None where they are there."""
    query = removals_of(project).where(removal.c.seq == seq)
    with store.reading() as connection:
        row = connection.execute(query).first()
    return None if row is None else Removal(*row)


def kept_digest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return one hash over keys, sets and what stays of p-values and scores, by key."""
    digests = Digests()
    for part in split(sorted(rows, key=lambda row: str(row["node_key"]))):
        digests.update(_texts(part))
    return digests.payload


def _texts(rows: Sequence[Mapping[str, Any]]) -> PredictionJson:
    keys, classes, p_values, scores = ([row[name] for row in rows] for name in COLUMNS)
    zeros, none = [0] * len(rows), [None] * len(rows)  # the others have digests of their own
    return PredictionJson(keys, classes, p_values, scores, zeros, zeros, zeros, none, none, none)


def _slim_predictions(connection: Connection, project: str, run: OldRun, sealed: str) -> _Slimmed:
    keys = select(prediction.c.node_key).where(
        prediction.c.project == project, prediction.c.seq == run.seq
    )
    before, after, entries, freed = Digests(), Digests(), 0, 0
    every = sorted(connection.execute(keys).scalars())  # not by a database's collation
    for part in split(every):
        rows = _rows(connection, project, part)
        try:
            before.update(to_json_columns([_decided(row) for row in rows]))
            slim = _slim_rows(rows, run)
        except (ValueError, TypeError, KeyError):
            raise _changed(run.seq) from None
        after.update(_texts(slim))
        freed += sum(_length(row) for row in rows) - sum(_length(row) for row in slim)
        of = (prediction.c.project == project) & (prediction.c.node_key == bindparam("of"))
        connection.execute(
            update(prediction).where(of).values(p_values=bindparam("p"), scores=bindparam("s")),
            [{"of": row["node_key"], "p": row["p_values"], "s": row["scores"]} for row in slim],
        )
        gone = delete(worklist_entry).where(
            worklist_entry.c.project == project, worklist_entry.c.node_key.in_(part)
        )
        entries += connection.execute(gone).rowcount
    if before.payload != sealed:
        raise _changed(run.seq)
    return _Slimmed(before.payload, after.payload, len(every), entries, freed)


def _rows(connection: Connection, project: str, keys: Sequence[str]) -> list[ColumnValues]:
    """The columns of some predictions, in the order of `keys`."""
    query = select(*(prediction.c[name] for name in COLUMNS)).where(
        prediction.c.project == project, prediction.c.node_key.in_(keys)
    )
    rows_by_key = {row.node_key: row._asdict() for row in connection.execute(query)}
    return [rows_by_key[key] for key in keys]


def _decided(row: Mapping[str, Any]) -> Prediction:
    """A prediction as it was decided; degree and band are no part of what is compared here."""
    classes, p_values, scores = (tuple(json.loads(row[name])) for name in COLUMNS[1:])
    return Prediction(row["node_key"], classes, p_values, scores, 0)


def _slim_rows(rows: Sequence[ColumnValues], run: OldRun) -> list[ColumnValues]:
    p_values, scores = (as_matrix([row[name] for row in rows]) for name in ("p_values", "scores"))
    place = {name: at for at, name in enumerate(run.classes)}
    shown = np.zeros(p_values.shape, bool)
    if run.lowest_level is not None:
        shown = p_values > run.lowest_level
    for number, row in enumerate(rows):
        shown[number, [place[name] for name in json.loads(row["classes"])]] = True
    kept = kept_p_values(p_values, shown), kept_scores(scores, run.threshold_naive)
    return [{**row, "p_values": p, "scores": s} for row, p, s in zip(rows, *kept, strict=True)]


def _slim_shadow_sets(connection: Connection, project: str, seq: int) -> dict[str, _SlimmedShadow]:
    """Remove the p-values of a run's shadow sets; return by version what was and what is there."""
    of_run = (shadow_set.c.project == project) & (shadow_set.c.seq == seq)
    versions = connection.execute(select(shadow_set.c.version).where(of_run).distinct()).scalars()
    slimmed = {}
    for version in sorted(versions):
        of_version = of_run & (shadow_set.c.version == version)
        columns = shadow_set.c.node_key, shadow_set.c.size, shadow_set.c.classes
        query = select(*columns, shadow_set.c.p_values).where(of_version)
        rows = [tuple(row) for row in connection.execute(query)]
        slim = [(key, size, classes, NO_P_VALUES) for key, size, classes, _ in rows]
        connection.execute(update(shadow_set).where(of_version).values(p_values=NO_P_VALUES))
        freed = sum(len(row[3]) - len(NO_P_VALUES) for row in rows)
        slimmed[version] = _SlimmedShadow(len(rows), sets_digest(rows), sets_digest(slim), freed)
    return slimmed


def _length(row: Mapping[str, Any]) -> int:
    return len(row["p_values"]) + len(row["scores"])


def _changed(seq: int) -> StoreError:
    return StoreError(
        found=f"the predictions of run {seq} are not those that were decided",
        needed="a record as the audit chain sealed it; retention would hide what was changed",
        next_step="ringfence verify",
    )
