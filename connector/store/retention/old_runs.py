"""Runs that are older than the period of `[audit] keep_days`, and which of them must wait."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import and_, case, func, select

from ringfence.connector.store.engine import Store
from ringfence.connector.store.retention.tables import removal
from ringfence.connector.store.tables import coverage, model, prediction, run

Waits = Literal["", "class unknown", "not audited", "not in the graph"]
"""Why the details of an old run stay; empty where they may go."""


@dataclass(frozen=True, slots=True)
class OldRun:
    """A run that is old enough, with what is needed to read its details.

    `unknown` counts nodes whose class is not known and may still become so: the node is there.
    """

    seq: int
    decided_ns: int
    nodes: int
    unknown: int
    waits: Waits
    threshold_naive: float | None
    lowest_level: float | None
    classes: tuple[str, ...]


def old_runs(
    store: Store, project: str, before_ns: int, open_before_ns: int | None = None
) -> list[OldRun]:
    """Return the runs decided before a time whose details are there, oldest first.

    Runs with nodes of unknown class wait; with `open_before_ns` those decided before it do not.
    """
    known = prediction.c.labelled_ns.is_not(None)
    open_ = and_(prediction.c.labelled_ns.is_(None), prediction.c.in_graph.is_(True))
    of_run = and_(prediction.c.project == run.c.project, prediction.c.seq == run.c.seq)
    counted = and_(
        coverage.c.project == run.c.project,
        coverage.c.seq == run.c.seq,
        coverage.c.slice == "run",
        coverage.c.first_alpha.is_(True),
    )
    removed = and_(removal.c.project == run.c.project, removal.c.seq == run.c.seq)
    terms = run.c.seq, run.c.decided_ns, run.c.state, run.c.threshold_naive, run.c.lowest_level
    query = (
        select(
            *terms,
            run.c.model,
            coverage.c.known.label("counted"),
            func.count().label("nodes"),
            func.sum(case((known, 1), else_=0)).label("known"),
            func.sum(case((open_, 1), else_=0)).label("open"),
        )
        .select_from(run)
        .join(prediction, of_run)
        .outerjoin(coverage, counted)
        .outerjoin(removal, removed)
        .where(run.c.project == project, run.c.decided_ns < before_ns, removal.c.seq.is_(None))
        .group_by(*terms, run.c.model, coverage.c.known)
        .order_by(run.c.seq)
    )
    models = select(model.c.version, model.c.manifest).where(model.c.project == project)
    with store.reading() as connection:
        rows = connection.execute(query).all()
        classes = {
            version: tuple(json.loads(manifest)["classes"]) if rows else ()
            for version, manifest in connection.execute(models)
        }
    return [_old_run(row, classes.get(row.model, ()), open_before_ns) for row in rows]


def _old_run(row: Any, classes: Sequence[str], open_before_ns: int | None) -> OldRun:
    waits: Waits = ""
    if row.state != "applied":
        waits = "not in the graph"
    elif row.counted is None or int(row.counted) != int(row.known):
        waits = "not audited"
    elif row.open and (open_before_ns is None or row.decided_ns >= open_before_ns):
        waits = "class unknown"
    return OldRun(
        int(row.seq),
        int(row.decided_ns),
        int(row.nodes),
        int(row.open),
        waits,
        row.threshold_naive,
        row.lowest_level,
        tuple(classes),
    )
