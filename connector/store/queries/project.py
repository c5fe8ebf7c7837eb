"""What dashboard, report, metrics and `status` read: small queries on the audit store.

Pages show coverage and run rows, which an audit has counted already; predictions are read by
primary key (`nodes`), the worklist by its index, and the Run page reads those of one run
(`outcome`), so a store of a million predictions answers like one of a thousand.
`count_predictions` is for `ringfence status` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, func, null, select

from ringfence.connector.records import (
    NAMED_SLICES,
    AuditMark,
    ChainEntry,
    Run,
    StoredCorrection,
    StoredCoverage,
)
from ringfence.connector.store import corrections
from ringfence.connector.store import coverage as coverage_rows
from ringfence.connector.store import schedule as scheduled_jobs
from ringfence.connector.store.engine import Store
from ringfence.connector.store.lifecycle.activations import (
    Activation,
    activations_of,
    states_of,
)
from ringfence.connector.store.lifecycle.comparisons import StoredComparison, comparisons_of
from ringfence.connector.store.queries.records import (
    LeaseState,
    ModelRecord,
    MonitorState,
    ProjectCounts,
    QuarantineReason,
    RunCoverage,
    StoredAlarm,
    StoredAlarmEvent,
    alarm_event_from_row,
    model_from_row,
    monitor_state_from_row,
)
from ringfence.connector.store.queries.span import TimeSpan, find_entries, find_span
from ringfence.connector.store.queries.totals import (
    last_totals,
    own_promises,
    worst_promise,
    worst_total,
)
from ringfence.connector.store.retention.removals import Removal, removals_of
from ringfence.connector.store.rows import (
    ColumnValues,
    chain_entry_from_row,
    coverage_from_row,
    run_from_row,
)
from ringfence.connector.store.schedule import ScheduledJob
from ringfence.connector.store.tables import (
    alarm,
    alarm_event,
    audit,
    coverage,
    lease,
    model,
    prediction,
    quarantine,
    removal,
    run,
)

HEAVY_RUN_COLUMNS = ("calibration_scores", "watch")
MAX_NAMED_ROWS = 2_000
ENTRIES_PER_BLOCK = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProjectQueries:
    """A project as far as SQL knows it."""

    store: Store
    project: str
    max_rows: int = 200  # rows of a history, unless another number is given
    span: TimeSpan | None = None  # histories are of this time alone
    spread: bool = False  # rows of histories are spread over the span, else its newest ones

    def within(self, from_ns: int | None, until_ns: int | None) -> ProjectQueries:
        """Return the same project with its histories limited to a span of time."""
        with self.store.reading() as connection:
            return replace(self, span=find_span(connection, self.project, from_ns, until_ns))

    def unlimited(self) -> ProjectQueries:
        """Return the same project with histories of any length, for files."""
        return replace(self, max_rows=10**9)

    def rows(self, query: Any) -> list[ColumnValues]:
        """Return a query's rows by column."""
        with self.store.reading() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def first(self, query: Any) -> ColumnValues | None:
        """Return a query's first row."""
        first_rows = self.rows(query.limit(1))
        return first_rows[0] if first_rows else None

    def records(self, query: Any, from_row: Callable[[Any], T]) -> list[T]:
        """Return a query's rows as records."""
        with self.store.reading() as connection:
            return [from_row(row) for row in connection.execute(query)]

    def scalar(self, query: Any) -> Any:
        """Return the first column of a query's first row."""
        with self.store.reading() as connection:
            return connection.execute(query).scalar()

    # -- runs -----------------------------------------------------------------------------------

    def runs(self, last: int | None = None) -> list[Run]:
        """Return the last runs, oldest first; calibration scores and monitor are left out (None).

        Those two are long; `run` and `monitor_states` read them.
        """
        heavy = set(HEAVY_RUN_COLUMNS)
        light = [null().label(column.name) if column.name in heavy else column for column in run.c]
        query = select(*light).where(run.c.project == self.project, *self._in_span(run.c.seq))
        newest = query.order_by(run.c.seq.desc()).limit(last or self.max_rows)
        return self.records(newest, run_from_row)[::-1]

    def complete_runs(self, last: int) -> list[Run]:
        """Return the last runs, oldest first, with calibration scores and monitor."""
        query = select(run).where(run.c.project == self.project)
        return self.records(query.order_by(run.c.seq.desc()).limit(last), run_from_row)[::-1]

    def run(self, seq: int) -> Run | None:
        """Return one run; None where there is none of this number."""
        query = select(run).where(run.c.project == self.project, run.c.seq == seq)
        return next(iter(self.records(query, run_from_row)), None)

    def decided_between(self) -> tuple[int, int]:
        """Return when the first and the last run were decided; the same without any."""
        ends = select(func.min(run.c.decided_ns), func.max(run.c.decided_ns))
        with self.store.reading() as connection:
            first, last = connection.execute(ends.where(run.c.project == self.project)).one()
        return (first or 0), (last or 0)

    def monitor_states(self) -> list[MonitorState]:
        """Return exchangeability monitor and calibration score quantiles of the last runs."""
        columns = (run.c.seq, run.c.decided_ns, run.c.model, run.c.watch, run.c.calibration_scores)
        query = select(*columns).where(run.c.project == self.project, *self._in_span(run.c.seq))
        rows = self.rows(query.order_by(run.c.seq.desc()).limit(self.max_rows))
        return [monitor_state_from_row(row) for row in reversed(rows)]

    def count_unfinished(self) -> int:
        """Return how many runs are decided and not in the graph yet."""
        unfinished = (run.c.project == self.project, run.c.state == "decided")
        return int(self.scalar(select(func.count()).where(*unfinished)))

    def count_predictions(self) -> ProjectCounts:
        """Return how many predictions there are, and of how many the class is known; a scan."""
        counted = select(
            func.count().label("evaluated"), func.count(prediction.c.labelled_ns).label("known")
        )
        row = self.rows(counted.where(prediction.c.project == self.project))[0]
        return ProjectCounts(int(row["evaluated"]), int(row["known"]))

    # -- coverage -------------------------------------------------------------------------------

    def coverage(
        self, slice_: str, last: int | None = None, *, every_alpha: bool = False
    ) -> list[RunCoverage]:
        """Return the rows of a slice, oldest run first; at each run's first alpha, or at all."""
        chosen = [coverage.c.project == self.project, coverage.c.slice == slice_]
        if not every_alpha:
            chosen.append(coverage.c.first_alpha.is_(True))
        if slice_ not in NAMED_SLICES:
            chosen += self._in_span(coverage.c.seq)
        query = (
            select(coverage, run.c.decided_ns, run.c.threshold, run.c.n_calibration)
            .join(run, (run.c.project == coverage.c.project) & (run.c.seq == coverage.c.seq))
            .where(*chosen)
            .order_by(coverage.c.seq.desc(), coverage.c.name, coverage.c.alpha)
            .limit(last or self.max_rows)
        )
        records = [RunCoverage(**row) for row in self.rows(query)]
        return sorted(records, key=lambda record: (record.seq, record.name, record.alpha))

    def coverage_of_run(self, seq: int) -> StoredCoverage | None:
        """Return the row of one run at its first alpha; None before an audit counted it."""
        query = select(coverage).where(
            coverage.c.project == self.project,
            coverage.c.seq == seq,
            coverage.c.slice == "run",
            coverage.c.first_alpha.is_(True),
        )
        return next(iter(self.records(query, coverage_from_row)), None)

    def all_coverage(self) -> list[StoredCoverage]:
        """Return the rows of every slice, oldest run first."""
        return coverage_rows.stored(self.store, self.project)

    def total(self) -> StoredCoverage | None:
        """Return the newest model's worst row over all runs of the same terms."""
        return worst_total(self.totals())

    def verdict(self) -> StoredCoverage | None:
        """Return the row whose verdict a project is shown with: the worst promised one."""
        return worst_promise(self.total(), self.own_promises())

    def own_promises(self) -> list[StoredCoverage]:
        """Return the rows of classes and groups that have a promise of their own."""
        with self.store.reading() as connection:
            return own_promises(connection, self.project)

    def totals(self) -> list[StoredCoverage]:
        """Return the newest row over all runs of each terms, oldest run first."""
        with self.store.reading() as connection:
            return last_totals(connection, self.project)

    def named(self, slice_: str) -> list[RunCoverage]:
        """Return the newest model's classes or groups, worst first."""
        records = self.coverage(slice_, last=MAX_NAMED_ROWS)
        newest_seq = max((record.seq for record in records), default=0)
        newest = [record for record in records if record.seq == newest_seq]
        return sorted(newest, key=lambda row: row.worst_first)

    def counts(self) -> ProjectCounts:
        """Return how many nodes were evaluated and known, from the rows of runs and audits."""
        evaluated = self.scalar(
            select(func.sum(run.c.n_evaluated)).where(run.c.project == self.project)
        )
        known = self.scalar(
            select(func.sum(coverage.c.known)).where(
                coverage.c.project == self.project,
                coverage.c.slice == "run",
                coverage.c.first_alpha.is_(True),
            )
        )
        return ProjectCounts(int(evaluated or 0), int(known or 0))

    # -- models, quarantine, alarms, schedule ---------------------------------------------------

    def models(self) -> list[ModelRecord]:
        """Return the model versions with their manifests and states, oldest first."""
        query = select(model).where(model.c.project == self.project).order_by(model.c.trained_ns)
        rows = self.rows(query)
        states = states_of([row["version"] for row in rows], self.activations())
        return [model_from_row(row, states[row["version"]]) for row in rows]

    def count_known_since(self, ns: int) -> int:
        """Return how many classes of evaluated nodes became known after a time."""
        query = select(func.count()).where(
            prediction.c.project == self.project, prediction.c.labelled_ns > ns
        )
        return int(self.scalar(query))

    def comparisons(self) -> list[StoredComparison]:
        """Return every comparison of model versions, oldest first."""
        return comparisons_of(self.store, self.project)

    def activations(self) -> list[Activation]:
        """Return every change of the model version in use, oldest first."""
        return activations_of(self.store, self.project)

    def runs_by_model(self) -> dict[str, tuple[int, int]]:
        """Return how many runs each model version made, and how many nodes it evaluated."""
        query = (
            select(run.c.model, func.count(), func.sum(run.c.n_evaluated))
            .where(run.c.project == self.project)
            .group_by(run.c.model)
        )
        return {row[0]: (int(row[1]), int(row[2])) for row in self.records(query, tuple)}

    def quarantine(self) -> list[QuarantineReason]:
        """Return reasons with the number of nodes, the most frequent first."""
        query = (
            select(quarantine.c.reason, func.count().label("nodes"))
            .where(quarantine.c.project == self.project, quarantine.c.kind == "node")
            .group_by(quarantine.c.reason)
            .order_by(func.count().desc())
        )
        return [QuarantineReason(**row) for row in self.rows(query)]

    def odd_relationships(self) -> list[str]:
        """Return relationships without a usable time, in words; they were read all the same."""
        query = (
            select(quarantine.c.node_key, quarantine.c.reason)
            .where(quarantine.c.project == self.project, quarantine.c.kind == "relationship")
            .order_by(quarantine.c.node_key, quarantine.c.reason)
        )
        return [f"{row['node_key']} {row['reason']}" for row in self.rows(query)]

    def corrections(self) -> list[StoredCorrection]:
        """Return the last corrections of calibration nodes, newest first."""
        with self.store.reading() as connection:
            rows = corrections.all_corrections(connection, self.project)
        inside = [row for row in rows if self.span is None or self.span.holds(row.noticed_ns)]
        return inside[::-1][: self.max_rows]

    def removals(self) -> list[Removal]:
        """Return the runs whose details retention removed, newest first."""
        query = removals_of(self.project).order_by(removal.c.seq.desc()).limit(self.max_rows)
        return [Removal(**row) for row in self.rows(query)]

    def alarms(self) -> list[StoredAlarm]:
        """Return the state of every rule now."""
        query = select(alarm).where(alarm.c.project == self.project).order_by(alarm.c.rule)
        return [StoredAlarm(**row) for row in self.rows(query)]

    def alarm_events(self) -> list[StoredAlarmEvent]:
        """Return the last changes of alarms, newest first."""
        query = select(alarm_event).where(alarm_event.c.project == self.project)
        if self.span is not None and self.span.from_ns is not None:
            query = query.where(alarm_event.c.at_ns >= self.span.from_ns)
        if self.span is not None and self.span.until_ns is not None:
            query = query.where(alarm_event.c.at_ns < self.span.until_ns)
        rows = self.rows(query.order_by(alarm_event.c.n.desc()).limit(self.max_rows))
        return [alarm_event_from_row(row) for row in rows]

    def schedule(self) -> list[ScheduledJob]:
        """Return when each scheduled job is due and how it ended last; empty without a schedule."""
        with self.store.reading() as connection:
            return scheduled_jobs.rows(connection, self.project)

    # -- audit, lease, chain --------------------------------------------------------------------

    def audit_mark(self) -> AuditMark | None:
        """Return when the last audit was, with the advisor's opinion; None before the first."""
        return coverage_rows.mark_of(self.store, self.project)

    def lease(self) -> LeaseState | None:
        """Return which process is at work, if any, and up to where the graph was read."""
        row = self.first(select(lease).where(lease.c.project == self.project))
        if row is None:
            return None
        working = row["owner"] if row["expires_ns"] > self.now_ns() else None
        return LeaseState(row["watermark_ns"], working)

    def now_ns(self) -> int:
        """Return the database's time."""
        with self.store.reading() as connection:
            return self.store.now_ns(connection)

    def chain(self) -> list[ChainEntry]:
        """Return the last entries of the audit chain, newest first."""
        return next(self.chain_blocks(self.max_rows), [])

    def chain_blocks(self, size: int = ENTRIES_PER_BLOCK) -> Iterator[list[ChainEntry]]:
        """Yield the same entries, newest first, `size` at a time."""
        left, before = self.max_rows, self.chain_length() + 1
        first = 1
        if self.span is not None:
            with self.store.reading() as connection:
                first, before = find_entries(connection, self.project, self.span)
        while left > 0:
            query = select(audit).where(
                audit.c.project == self.project, audit.c.n >= first, audit.c.n < before
            )
            newest_first = query.order_by(audit.c.n.desc()).limit(min(size, left))
            block = self.records(newest_first, chain_entry_from_row)
            if not block:
                return
            yield block
            left, before = left - len(block), block[-1].n

    def whole_chain(self) -> list[ChainEntry]:
        """Return every entry of the audit chain, oldest first."""
        query = select(audit).where(audit.c.project == self.project).order_by(audit.c.n)
        return self.records(query, chain_entry_from_row)

    def chain_length(self) -> int:
        """Return the number of the chain's last entry."""
        query = select(func.max(audit.c.n)).where(audit.c.project == self.project)
        return int(self.scalar(query) or 0)

    def count_chain_entries(self) -> int:
        """Return how many entries the chain has."""
        return int(self.scalar(select(func.count()).where(audit.c.project == self.project)))

    def _in_span(self, seq: ColumnElement[int]) -> list[ColumnElement[bool]]:
        if self.span is None:
            return []
        return self.span.chosen(seq, self.max_rows if self.spread else None)
