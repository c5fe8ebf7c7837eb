"""`ringfence status`: what stands in the audit store, read without touching graph or model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from ringfence.connector import coverage, migrate_sql
from ringfence.connector.store import Store
from ringfence.connector.tables import audit, lease, model, prediction, run
from ringfence.connector.times import words
from ringfence.jobs.looking import Look
from ringfence.jobs.schedule.state import read_schedule


@dataclass(frozen=True, slots=True)
class Status:
    """A project at a glance."""

    project: str
    models: tuple[dict[str, Any], ...]
    watermark: str
    working: str | None
    runs: tuple[dict[str, Any], ...]
    unfinished: int
    evaluated: int
    unknown: int
    quarantine: tuple[dict[str, Any], ...]
    coverage: tuple[dict[str, Any], ...]
    chain_entries: int
    schedule: tuple[dict[str, Any], ...]


def read_status(store: Store, project: str, last: int = 10) -> Status:
    """Return the state of `project` with its `last` runs."""
    migrate_sql.require_sql(store)
    with store.reading() as connection:
        now = store.now_ns(connection)
        held = connection.execute(select(lease).where(lease.c.project == project)).first()
        models = connection.execute(
            select(model).where(model.c.project == project).order_by(model.c.trained_ns)
        ).all()
        runs = connection.execute(
            select(run).where(run.c.project == project).order_by(run.c.seq.desc()).limit(last)
        ).all()
        unfinished = connection.execute(
            select(func.count()).where(run.c.project == project, run.c.state == "decided")
        ).scalar_one()
        evaluated, known = connection.execute(
            select(func.count(), func.count(prediction.c.labelled_ns)).where(
                prediction.c.project == project
            )
        ).one()
        entries = connection.execute(
            select(func.count()).where(audit.c.project == project)
        ).scalar_one()
    return Status(
        project=project,
        models=tuple(_model(row) for row in models),
        watermark=words(held.watermark_ns if held else None),
        working=held.owner if held and held.expires_ns > now else None,
        runs=tuple(_run(row) for row in reversed(runs)),
        unfinished=int(unfinished),
        evaluated=int(evaluated),
        unknown=int(evaluated - known),
        quarantine=tuple(Look(store, project).quarantine()),
        coverage=tuple(row._asdict() for row in coverage.stored(store, project)),
        chain_entries=int(entries),
        schedule=read_schedule(store, project),
    )


def _model(row: Any) -> dict[str, Any]:
    manifest = json.loads(row.manifest)
    return {
        "version": row.version,
        "trained": words(row.trained_ns),
        "network": manifest["network"],
        "classes": manifest["classes"],
        **manifest["counts"],
    }


def _run(row: Any) -> dict[str, Any]:
    body = row._asdict()
    body["notes"] = json.loads(row.notes)
    body["timings"] = json.loads(row.timings)
    body["decided"] = words(row.decided_ns)
    return dict(body)
