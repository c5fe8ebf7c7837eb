"""`ringfence status`: the audit store at a glance, without touching graph or model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypedDict

from ringfence.connector.json_types import JsonObject
from ringfence.connector.records import Run, StoredCoverage
from ringfence.connector.store import migrate, schedule
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
from ringfence.jobs.auditing.list_audit import ListAudit, audit_lists
from ringfence.jobs.lifecycle.comparison import warnings_of
from ringfence.jobs.lifecycle.shadow_summary import ShadowSummary, read_shadows
from ringfence.jobs.views.sample import SampleStatus, read_sample_status


class JobStatus(TypedDict):
    """A scheduled job under the keys of `ringfence status --json`; times are ISO texts."""

    job: str
    trigger: str
    state: str
    started: str
    ended: str
    outcome: str | None
    words: str | None
    next: str
    failures_in_a_row: int
    last_failure: str
    last_failure_words: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """A project at a glance; `not_beaten` names the baselines that its model does not beat."""

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
    schedule: tuple[JobStatus, ...]
    totals: tuple[StoredCoverage, ...]
    alarms: tuple[StoredAlarm, ...]
    not_beaten: tuple[str, ...] = ()
    shadows: tuple[ShadowSummary, ...] = ()
    sample: SampleStatus | None = None
    lists: tuple[ListAudit, ...] = ()

    @property
    def total(self) -> StoredCoverage | None:
        """The newest model's worst total."""
        return worst_total(self.totals)

    @property
    def verdict(self) -> StoredCoverage | None:
        """The worst of all promises: for all nodes, a class or a group."""
        return worst_promise(self.total, [row for row in self.coverage if row.own_promise])

    def as_json(self) -> JsonObject:
        """Return what `ringfence status --json` prints."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "models": [_model_json(model) for model in self.models],
            "runs": [_run_json(run) for run in self.runs],
            "quarantine": [as_row(reason) for reason in self.quarantine],
            "coverage": [as_row(row) for row in self.coverage],
            "totals": [as_row(row) for row in self.totals],
            "alarms": [as_row(alarm) for alarm in self.alarms],
            "shadows": [shadow.as_json() for shadow in self.shadows],
            "sample": None if self.sample is None else self.sample.as_json(),
            "lists": [row.as_json() for row in self.lists],
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
        sample=read_sample_status(queries),
        lists=tuple(audit_lists(store, project)),
    )


def _model_json(model: ModelRecord) -> JsonObject:
    return {
        "version": model.version,
        "state": model.state,
        "trained": format_time(model.trained_ns),
        "network": model.network,
        "classes": model.classes,
        **{"holdout": 0, **model.counts},
    }


def _run_json(run: Run) -> JsonObject:
    """The run's columns; calibration scores and monitor are JSON text, as they stand in SQL."""
    row = as_row(run)
    for name in ("calibration_scores", "watch"):
        row[name] = None if row[name] is None else dumps(row[name])
    return row | {"decided": format_time(run.decided_ns)}


def read_schedule(store: Store, project: str) -> tuple[JobStatus, ...]:
    """Return a row per job: trigger, last start and end, outcome, next time, last failure."""
    with store.reading() as connection:
        now = store.now_ns(connection)
        return tuple(
            {
                "job": row.job,
                "trigger": f"{row.trigger} ({row.timezone})",
                "state": _job_state(row, now),
                "started": format_time(row.started_ns),
                "ended": format_time(row.ended_ns),
                "outcome": row.outcome,
                "words": row.words,
                "next": format_time(row.due_ns) if row.due_ns is not None else "switched off",
                "failures_in_a_row": row.failures,
                "last_failure": format_time(row.failed_ns),
                "last_failure_words": row.failed_words,
            }
            for row in schedule.rows(connection, project)
        )


def _job_state(row: Any, now: int) -> str:
    if row.claimed_until_ns is not None:
        return f"running at {row.owner}" if row.claimed_until_ns > now else "interrupted"
    if row.due_ns is None:
        return "off"
    return "overdue" if row.due_ns <= now else "waiting"
