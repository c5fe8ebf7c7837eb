"""What dashboard, report and metrics look at: small reads from the audit store, never from scans.

Pages show coverage and run rows, which an audit has counted already; no function here reads the
predictions but by primary key, so a store of a million predictions answers like one of a thousand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from ringfence.connector.store import Store
from ringfence.connector.tables import (
    alarm,
    alarm_event,
    audit,
    audit_mark,
    coverage,
    lease,
    model,
    quarantine,
    run,
    schedule,
)

RUN_COLUMNS = tuple(
    column for column in run.c if column.name not in {"calibration_scores", "watch"}
)
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Look:
    """A project as far as SQL knows it."""

    store: Store
    project: str
    most: int = 200  # rows of a history, where no other number is asked for

    def rows(self, query: Any) -> Rows:
        """Return a query's rows as dictionaries."""
        with self.store.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def whole(self) -> Look:
        """Return the same project with histories of any length, for files."""
        return replace(self, most=10**9)

    def first(self, query: Any) -> dict[str, Any] | None:
        """Return a query's first row."""
        found = self.rows(query.limit(1))
        return found[0] if found else None

    # -- runs -----------------------------------------------------------------------------------

    def runs(self, last: int | None = None) -> Rows:
        """Return the last runs, oldest first, without their heavy columns."""
        query = select(*RUN_COLUMNS).where(run.c.project == self.project)
        return self.rows(query.order_by(run.c.seq.desc()).limit(last or self.most))[::-1]

    def run(self, seq: int) -> dict[str, Any] | None:
        """Return one run with notes, timings, scores and watch read from their JSON."""
        found = self.first(select(run).where(run.c.project == self.project, run.c.seq == seq))
        if found is None:
            return None
        for name in ("notes", "timings", "calibration_scores", "watch"):
            found[name] = json.loads(found[name]) if found[name] else None
        return found

    def watches(self) -> Rows:
        """Return seq, model, watch and calibration score quantiles of the last runs."""
        query = select(run.c.seq, run.c.model, run.c.watch, run.c.calibration_scores).where(
            run.c.project == self.project
        )
        rows = self.rows(query.order_by(run.c.seq.desc()).limit(self.most))[::-1]
        for row in rows:
            for name in ("watch", "calibration_scores"):
                row[name] = json.loads(row[name]) if row[name] else None
        return rows

    # -- coverage -------------------------------------------------------------------------------

    def coverage(self, slice_: str, last: int | None = None) -> Rows:
        """Return the rows of a slice, oldest run first."""
        query = (
            select(coverage, run.c.decided_ns, run.c.threshold, run.c.n_calibration)
            .join(run, (run.c.project == coverage.c.project) & (run.c.seq == coverage.c.seq))
            .where(coverage.c.project == self.project, coverage.c.slice == slice_)
            .order_by(coverage.c.seq.desc(), coverage.c.name)
            .limit(last or self.most)
        )
        return sorted(self.rows(query), key=lambda row: (row["seq"], row["name"]))

    def total(self) -> dict[str, Any] | None:
        """Return the newest row over all runs of a model."""
        query = select(coverage).where(
            coverage.c.project == self.project, coverage.c.slice == "total"
        )
        return self.first(query.order_by(coverage.c.seq.desc()))

    def named(self, slice_: str) -> Rows:
        """Return the newest model's classes or groups, worst first."""
        rows = self.coverage(slice_, last=2_000)
        newest = max((row["seq"] for row in rows), default=0)
        own = [row for row in rows if row["seq"] == newest]
        return sorted(own, key=lambda row: (row["p_value"], row["coverage"] or 0.0, row["name"]))

    def counts(self) -> dict[str, int]:
        """Return how many nodes were evaluated, and how many of their classes are known."""
        own = coverage.c.project == self.project
        with self.store.reading() as connection:
            evaluated = connection.execute(
                select(func.sum(run.c.n_evaluated)).where(run.c.project == self.project)
            ).scalar()
            known = connection.execute(
                select(func.sum(coverage.c.known)).where(own, coverage.c.slice == "run")
            ).scalar()
        evaluated, known = int(evaluated or 0), int(known or 0)
        return {"evaluated": evaluated, "known": known, "unknown": evaluated - known}

    def schedule(self) -> Rows:
        """Return when each scheduled job is due and how it ended last; empty without a schedule."""
        return self.rows(
            select(schedule).where(schedule.c.project == self.project).order_by(schedule.c.job)
        )

    # -- the rest -------------------------------------------------------------------------------

    def models(self) -> Rows:
        """Return the model versions with their manifests, oldest first."""
        query = select(model).where(model.c.project == self.project).order_by(model.c.trained_ns)
        rows = self.rows(query)
        for row in rows:
            row["manifest"] = json.loads(row["manifest"])
        return rows

    def quarantine(self) -> Rows:
        """Return reasons with the number of nodes, the most frequent first."""
        query = (
            select(quarantine.c.reason, func.count().label("nodes"))
            .where(quarantine.c.project == self.project)
            .group_by(quarantine.c.reason)
            .order_by(func.count().desc())
        )
        return self.rows(query)

    def alarms(self) -> Rows:
        """Return what every rule says now."""
        return self.rows(
            select(alarm).where(alarm.c.project == self.project).order_by(alarm.c.rule)
        )

    def alarm_events(self) -> Rows:
        """Return the last changes of alarms, newest first."""
        query = select(alarm_event).where(alarm_event.c.project == self.project)
        return self.rows(query.order_by(alarm_event.c.n.desc()).limit(self.most))

    def mark(self) -> dict[str, Any] | None:
        """Return how far the audit has come, with the advisor's opinion."""
        found = self.first(select(audit_mark).where(audit_mark.c.project == self.project))
        if found and found["advice"]:
            found["advice"] = json.loads(found["advice"])
        return found

    def lease(self) -> dict[str, Any] | None:
        """Return who is at work, if anyone, and up to where the graph was read."""
        found = self.first(select(lease).where(lease.c.project == self.project))
        if found:
            with self.store.reading() as connection:
                now = self.store.now_ns(connection)
            found["working"] = found["owner"] if found["expires_ns"] > now else None
        return found

    def chain(self) -> Rows:
        """Return the last entries of the audit chain, newest first."""
        query = select(audit).where(audit.c.project == self.project)
        rows = self.rows(query.order_by(audit.c.n.desc()).limit(self.most))
        for row in rows:
            body = json.loads(row["body"])
            row["kind"], row["what"] = body["kind"], _entry_words(body)
        return rows

    def chain_length(self) -> int:
        """Return the number of entries in the chain."""
        query = select(func.max(audit.c.n).label("n")).where(audit.c.project == self.project)
        found = self.first(query)
        return int((found or {}).get("n") or 0)


def chain_entry_of(connection: Connection, project: str, seq: int) -> RowMapping | None:
    """Return number and hash of the chain entry that decided a run."""
    query = (
        select(audit.c.n, audit.c.hash)
        .where(
            audit.c.project == project,
            audit.c.body.like('%"kind":"decided"%'),
            audit.c.body.like(f'%"seq":{int(seq)},%'),
        )
        .limit(1)
    )
    return connection.execute(query).mappings().first()


def _entry_words(body: dict[str, Any]) -> str:
    kind = body["kind"]
    if kind == "decided":
        facts = body["run"]
        return f"run {facts['seq']}: {facts['n_evaluated']} sets by {facts['rule']}"
    if kind == "audited":
        rows = body["coverage"]
        return f"coverage of {len({row['seq'] for row in rows})} runs, {len(rows)} rows"
    if kind == "classes":
        return f"{body['nodes']} classes became known"
    if kind == "trained":
        return f"model {body['version']} with {body['members']} labelled nodes"
    if kind == "alarm":
        return f"alarm {body['rule']}: {body['was']} to {body['state']}"
    return ", ".join(name for name in body if name not in {"n", "project", "kind"})
