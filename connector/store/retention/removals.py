"""Remove the details of old runs: some runs in one transaction, sealed by one chain entry.

A run keeps its row, its thresholds, coverage and digests. Each of its nodes keeps its key, set,
size, degree, stratum, class and whether the class was covered: nobody is evaluated twice, coverage
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
from ringfence.connector.records import Prediction
from ringfence.connector.store import chain
from ringfence.connector.store.blocks import split
from ringfence.connector.store.engine import Store
from ringfence.connector.store.retention.kept_detail import as_matrix, kept_p_values, kept_scores
from ringfence.connector.store.retention.old_runs import OldRun
from ringfence.connector.store.retention.tables import removal
from ringfence.connector.store.shadow.sets import sets_digest
from ringfence.connector.store.tables import prediction, shadow_set, worklist_entry
from ringfence.connector.store.trail.prediction_texts import Digests, PredictionTexts, texts_of
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
            sets = sum(one["sets"] for one in shadows.values())
            freed = slimmed.freed + sum(one.pop("freed") for one in shadows.values())
            one = Removal(run.seq, now, keep_days, slimmed.nodes, slimmed.entries, sets, freed)
            done.append(one)
            digests = {"removed": slimmed.removed, "kept": slimmed.kept, "shadow": shadows}
            facts.append({**asdict(one), **digests})
        connection.execute(insert(removal), [{"project": project, **asdict(one)} for one in done])
        fault_points.reach("inside removal")
        body = {"keep_days": keep_days, "before_ns": before_ns, "runs": facts}
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


def _texts(rows: Sequence[Mapping[str, Any]]) -> PredictionTexts:
    keys, classes, p_values, scores = ([row[name] for row in rows] for name in COLUMNS)
    none = [0] * len(rows)  # degrees and bands have digests of their own
    return PredictionTexts(keys, classes, p_values, scores, none, none, none, [None] * len(rows))


def _slim_predictions(connection: Connection, project: str, run: OldRun, sealed: str) -> _Slimmed:
    keys = select(prediction.c.node_key).where(
        prediction.c.project == project, prediction.c.seq == run.seq
    )
    before, after, entries, freed = Digests(), Digests(), 0, 0
    every = sorted(connection.execute(keys).scalars())  # not by a database's collation
    for part in split(every):
        rows = _rows(connection, project, part)
        try:
            before.update(texts_of([_decided(row) for row in rows]))
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


def _rows(connection: Connection, project: str, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The columns of some predictions, in the order of `keys`."""
    query = select(*(prediction.c[name] for name in COLUMNS)).where(
        prediction.c.project == project, prediction.c.node_key.in_(keys)
    )
    found = {row.node_key: row._asdict() for row in connection.execute(query)}
    return [found[key] for key in keys]


def _decided(row: Mapping[str, Any]) -> Prediction:
    """A prediction as it was decided; degree and band are no part of what is compared here."""
    classes, p_values, scores = (tuple(json.loads(row[name])) for name in COLUMNS[1:])
    return Prediction(row["node_key"], classes, p_values, scores, 0)


def _slim_rows(rows: Sequence[dict[str, Any]], run: OldRun) -> list[dict[str, Any]]:
    p_values, scores = (as_matrix([row[name] for row in rows]) for name in ("p_values", "scores"))
    place = {name: at for at, name in enumerate(run.classes)}
    shown = np.zeros(p_values.shape, bool)
    if run.lowest_level is not None:
        shown = p_values > run.lowest_level
    for number, row in enumerate(rows):
        shown[number, [place[name] for name in json.loads(row["classes"])]] = True
    kept = kept_p_values(p_values, shown), kept_scores(scores, run.threshold_naive)
    return [{**row, "p_values": p, "scores": s} for row, p, s in zip(rows, *kept, strict=True)]


def _slim_shadow_sets(connection: Connection, project: str, seq: int) -> dict[str, dict[str, Any]]:
    """Take the p-values from a run's shadow sets; return by version what was and what is there."""
    of_run = (shadow_set.c.project == project) & (shadow_set.c.seq == seq)
    versions = connection.execute(select(shadow_set.c.version).where(of_run).distinct()).scalars()
    found = {}
    for version in sorted(versions):
        own = of_run & (shadow_set.c.version == version)
        columns = shadow_set.c.node_key, shadow_set.c.size, shadow_set.c.classes
        query = select(*columns, shadow_set.c.p_values).where(own)
        rows = [tuple(row) for row in connection.execute(query)]
        slim = [(key, size, classes, NO_P_VALUES) for key, size, classes, _ in rows]
        connection.execute(update(shadow_set).where(own).values(p_values=NO_P_VALUES))
        found[version] = {
            "sets": len(rows),
            "removed": sets_digest(rows),
            "kept": sets_digest(slim),
            "freed": sum(len(row[3]) - len(NO_P_VALUES) for row in rows),
        }
    return found


def _length(row: Mapping[str, Any]) -> int:
    return len(row["p_values"]) + len(row["scores"])


def _changed(seq: int) -> StoreError:
    return StoreError(
        found=f"the predictions of run {seq} are not those that were decided",
        needed="a record as the audit chain sealed it; retention would hide what was changed",
        next_step="ringfence verify",
    )
