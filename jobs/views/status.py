"""`ringfence status`: what stands in the audit store, read without touching graph or model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ringfence.connector.records import Run, StoredCoverage
from ringfence.connector.store import migrate
from ringfence.connector.store.engine import Store, dumps
from ringfence.connector.store.lifecycle.comparisons import comparisons_of
from ringfence.connector.store.queries.project import ProjectQueries
from ringfence.connector.store.queries.records import (
    ModelRecord,
    QuarantineReason,
    StoredAlarm,
    as_row,
)
from ringfence.connector.store.queries.totals import worst_promise, worst_total
from ringfence.connector.times import format_time
from ringfence.jobs.lifecycle.comparison import warnings_of
from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary, read_shadows
from ringfence.jobs.schedule.state import read_schedule


@dataclass(frozen=True, slots=True)
class Status:
    """A project at a glance; `not_beaten` says what its model is no better than."""

    project: str
    models: tuple[ModelRecord, ...]
    watermark: str
    working: str | None
    runs: tuple[Run, ...]
    unfinished: int
    evaluated: int
    unknown: int
    quarantine: tuple[QuarantineReason, ...]
    coverage: tuple[StoredCoverage, ...]
    chain_entries: int
    schedule: tuple[dict[str, Any], ...]
    totals: tuple[StoredCoverage, ...]
    alarms: tuple[StoredAlarm, ...]
    not_beaten: tuple[str, ...] = ()
    shadows: tuple[ShadowSummary, ...] = ()

    @property
    def total(self) -> StoredCoverage | None:
        """The newest model's worst total."""
        return worst_total(self.totals)

    @property
    def verdict(self) -> StoredCoverage | None:
        """The worst of all that is promised: to all nodes, to a class, to a group."""
        return worst_promise(self.total, [row for row in self.coverage if row.own_promise])

    def as_json(self) -> dict[str, Any]:
        """Return what `ringfence status --json` prints."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "models": [_model_json(model) for model in self.models],
            "runs": [_run_json(run) for run in self.runs],
            "quarantine": [as_row(reason) for reason in self.quarantine],
            "coverage": [as_row(row) for row in self.coverage],
            "totals": [as_row(row) for row in self.totals],
            "alarms": [as_row(alarm) for alarm in self.alarms],
            "shadows": [one.as_json() for one in self.shadows],
            "verdict": None if self.verdict is None else self.verdict.words,
        }


def read_status(store: Store, project: str, last: int = 10) -> Status:
    """Return the state of `project` with its `last` runs."""
    migrate.require_sql(store)
    queries = ProjectQueries(store, project)
    lease, counts = queries.lease(), queries.count_predictions()
    models = queries.models()
    states = [(model.version, model.state) for model in models]
    return Status(
        project=project,
        models=tuple(models),
        watermark=format_time(lease.watermark_ns if lease else None),
        working=lease.working if lease else None,
        runs=tuple(queries.complete_runs(last)),
        unfinished=queries.count_unfinished(),
        evaluated=counts.evaluated,
        unknown=counts.unknown,
        quarantine=tuple(queries.quarantine()),
        coverage=tuple(queries.all_coverage()),
        totals=tuple(queries.totals()),
        alarms=tuple(queries.alarms()),
        chain_entries=queries.count_chain_entries(),
        schedule=read_schedule(store, project),
        not_beaten=tuple(warnings_of(comparisons_of(store, project), states)),
        shadows=tuple(read_shadows(store, project).values()),
    )


def _model_json(model: ModelRecord) -> dict[str, Any]:
    return {
        "version": model.version,
        "state": model.state,
        "trained": format_time(model.trained_ns),
        "network": model.network,
        "classes": model.classes,
        **{"holdout": 0, **model.counts},
    }


def _run_json(run: Run) -> dict[str, Any]:
    """The run's columns; calibration scores and monitor are JSON text, as they stand in SQL."""
    row = as_row(run)
    for name in ("calibration_scores", "watch"):
        row[name] = None if row[name] is None else dumps(row[name])
    return row | {"decided": format_time(run.decided_ns)}
