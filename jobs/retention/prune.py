"""`ringfence prune`: remove the details of runs that are older than `[audit] keep_days`.

A block of runs is removed in one transaction with its chain entry; a process that dies in between
leaves whole blocks, and the next one goes on. Before anything of a run is removed, all of it is
compared with the chain: retention must not hide that it was changed.

A first removal can have years to go through. It is done in turns of so many nodes, and the lease is
free between two of them, so that scoring does not wait for all of it. A run is never divided.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count

from ringfence.connector import fault_points
from ringfence.connector.errors import ConfigError, LeaseHeld, StoreError
from ringfence.connector.json_types import JsonObject
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.audit_chain.integrity import (
    AuditRecord,
    RecordReader,
    record_snapshot,
)
from ringfence.connector.store.audit_chain.keys import KeySource
from ringfence.connector.store.audit_chain.preflight_check import require_sound_record
from ringfence.connector.store.engine import Store
from ringfence.connector.store.retention.old_runs import OldRun, old_runs
from ringfence.connector.store.retention.removals import Removal, remove_details
from ringfence.connector.store.writer import Writer
from ringfence.connector.times import NANOSECONDS, format_time
from ringfence.jobs.config.audit import AuditSettings
from ringfence.jobs.integrity.prediction_check import find_run_edits
from ringfence.jobs.integrity.shadow_check import find_shadow_set_edits
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.telemetry.traced_run import traced

DAY_NS = 86_400 * NANOSECONDS
MAX_BLOCK_NODES = 20_000  # runs of fewer nodes share a transaction; a larger run has its own
MAX_BLOCK_RUNS = 100
MAX_TURN_NODES = 100_000  # after so many the lease is given back; a larger run is a turn of its own
WHAT = "removing details of nodes"


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What `ringfence prune` removed, or with `dry_run` would remove.

    `before_ns` is the time before which runs are old, None where everything is kept. `nodes` lost
    their scores and the p-values that the graph does not show, `entries` rows of the worklist went,
    `shadow_sets` lost their p-values, `freed` characters of text. A preview counts runs and nodes
    alone. `waiting` says how many old runs stay, by reason. `left` counts nodes of runs that the
    next turn takes: this one ended before them, to let other processes work.
    """

    keep_days: float
    before_ns: int | None
    dry_run: bool
    runs: tuple[int, ...] = ()
    nodes: int = 0
    entries: int = 0
    shadow_sets: int = 0
    freed: int = 0
    waiting: Mapping[str, int] | None = None
    left: int = 0

    def as_json(self) -> JsonObject:
        """Return what `ringfence prune --json` prints."""
        return {
            "keep_days": self.keep_days,
            "before": None if self.before_ns is None else format_time(self.before_ns),
            "dry_run": self.dry_run,
            "runs": list(self.runs),
            "nodes": self.nodes,
            "worklist_entries": self.entries,
            "shadow_sets": self.shadow_sets,
            "freed_characters": self.freed,
            "waiting": dict(self.waiting or {}),
            "nodes_left": self.left,
        }

    def after(self, earlier: PruneReport) -> PruneReport:
        """Return both turns as one; `earlier` came before this one."""
        return replace(
            self,
            runs=earlier.runs + self.runs,
            nodes=earlier.nodes + self.nodes,
            entries=earlier.entries + self.entries,
            shadow_sets=earlier.shadow_sets + self.shadow_sets,
            freed=earlier.freed + self.freed,
        )


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """Runs whose details can go, the time before which runs are old, and both as a report."""

    report: PruneReport
    before_ns: int
    runs: tuple[OldRun, ...]


@traced("prune")
def run_prune(
    workspace: Workspace,
    progress: Progress = no_progress,
    *,
    dry_run: bool = False,
    keep_days: float | None = None,
    turns: int | None = None,
) -> PruneReport:
    """Remove the details of old runs under the lease; `keep_days` in place of the configured one.

    At most so many `turns` are taken, all that are needed if None. If another process takes the
    lease between two of them, this one ends: the report says how many nodes are left. With
    `dry_run` nothing is written, and the lease is not needed.
    """
    workspace.require_migrated()
    settings = workspace.settings.audit
    days = settings.keep_days if keep_days is None else keep_days
    refuse_short_period(days, settings)
    if not days:
        return PruneReport(days, None, dry_run)
    store, project = workspace.store, workspace.project
    if dry_run:
        return find_old(store, project, settings, days).report
    done = _take_turn(workspace, progress, days)
    for _turn in count() if turns is None else range(turns - 1):
        if not done.left:
            break
        try:
            done = _take_turn(workspace, progress, days).after(done)
        except LeaseHeld:
            break
    return done


def _take_turn(workspace: Workspace, progress: Progress, days: float) -> PruneReport:
    """Hold the lease for one turn."""
    with write_session(workspace, progress) as session:
        require_sound_record(session.writer)
        settings = workspace.settings.audit
        plan = first_turn(find_old(workspace.store, workspace.project, settings, days))
        return remove_old(session.writer, workspace.key_source, plan, progress)


def first_turn(plan: PrunePlan) -> PrunePlan:
    """Return the part of a plan that one turn does: at least a run, its report says what is left.

    >>> runs = [OldRun(seq, 0, 60_000, 0, "", None, None, ()) for seq in (1, 2, 3)]
    >>> report = PruneReport(1.0, 0, True, (1, 2, 3), 180_000)
    >>> turn = first_turn(PrunePlan(report, 0, tuple(runs)))
    >>> turn.report.runs, turn.report.nodes, turn.report.left
    ((1,), 60000, 120000)
    """
    sums = list(accumulate(run.nodes for run in plan.runs))
    size = max(1, bisect_right(sums, MAX_TURN_NODES))
    runs = plan.runs[:size]
    nodes = sum(run.nodes for run in runs)
    report = replace(
        plan.report,
        runs=tuple(run.seq for run in runs),
        nodes=nodes,
        left=plan.report.nodes - nodes,
    )
    return replace(plan, report=report, runs=runs)


def refuse_short_period(days: float, settings: AuditSettings) -> None:
    """Raise `ConfigError` where details would go before the period for which they must be kept."""
    if days and days < settings.retention_days:
        raise ConfigError(
            found=f"details would be removed after {days:g} days, but [audit] retention_days says "
            f"that the record must be kept for {settings.retention_days:g}",
            needed="a keep_days that is not below retention_days, or 0 to remove nothing",
            next_step="edit [audit] keep_days or retention_days in ringfence.toml",
        )


def find_old(store: Store, project: str, settings: AuditSettings, days: float) -> PrunePlan:
    """Find the runs that are older than so many days, and which of them must wait."""
    with store.reading() as connection:
        now = store.now_ns(connection)
    before_ns = _ago(now, days)
    open_days = settings.keep_open_days
    open_before_ns = _ago(now, max(days, open_days)) if open_days else None
    old = old_runs(store, project, before_ns, open_before_ns)
    ready = tuple(run for run in old if not run.waits)
    waiting = Counter(run.waits for run in old if run.waits)
    report = PruneReport(
        days,
        before_ns,
        dry_run=True,
        runs=tuple(run.seq for run in ready),
        nodes=sum(run.nodes for run in ready),
        waiting=dict(sorted(waiting.items())),
    )
    return PrunePlan(report, before_ns, ready)


def _ago(now: int, days: float) -> int:
    """A time so many days ago, at the earliest 1970.

    >>> _ago(3 * DAY_NS, 1.0) == 2 * DAY_NS, _ago(3 * DAY_NS, 1e300)
    (True, 0)
    """
    return 0 if days * DAY_NS >= now else now - int(days * DAY_NS)


def remove_old(
    writer: Writer, source: KeySource, plan: PrunePlan, progress: Progress
) -> PruneReport:
    """Remove the details of the runs of a plan, block by block."""
    done: list[Removal] = []
    days, project = plan.report.keep_days, writer.lease.project
    with record_snapshot(writer.store, project, source) as reader:
        record = reader.record()
    progress(WHAT, 0, plan.report.nodes)
    for block in blocks_of(plan.runs):
        fault_points.reach("before removal")
        with record_snapshot(writer.store, project, source) as reader:
            sealed = _compare(reader, record, block)
        done += remove_details(writer, block, sealed, keep_days=days, before_ns=plan.before_ns)
        fault_points.reach("removed")
        progress(WHAT, sum(removed.nodes for removed in done), plan.report.nodes)
    return replace(
        plan.report,
        dry_run=False,
        runs=tuple(removed.seq for removed in done),
        nodes=sum(removed.nodes for removed in done),
        entries=sum(removed.entries for removed in done),
        shadow_sets=sum(removed.shadow_sets for removed in done),
        freed=sum(removed.freed for removed in done),
    )


def blocks_of(runs: Sequence[OldRun]) -> Iterator[list[OldRun]]:
    """Yield runs that go in one transaction."""
    block: list[OldRun] = []
    for run in runs:
        nodes = sum(removed.nodes for removed in block) + run.nodes
        if block and (nodes > MAX_BLOCK_NODES or len(block) == MAX_BLOCK_RUNS):
            yield block
            block = []
        block.append(run)
    if block:
        yield block


def _compare(reader: RecordReader, record: AuditRecord, block: Sequence[OldRun]) -> dict[int, str]:
    """Compare all of some runs with the chain; return the digests of their predictions in it."""
    seqs = {run.seq for run in block}
    problems = [
        *find_run_edits(reader, record, seqs),
        *find_shadow_set_edits(reader, record, seqs),
    ]
    if record.first_broken is not None:
        problems.insert(0, f"the audit chain is broken at entry {record.first_broken}")
    if problems:
        raise StoreError(
            found=f"{problems[0]}" + (f" (and {len(problems) - 1} more)" if problems[1:] else ""),
            needed="a record as the audit chain sealed it; retention would hide what was changed",
            next_step="ringfence verify",
        )
    return {
        body["run"]["seq"]: body["predictions"]
        for body in record.bodies("decided")
        if body["run"]["seq"] in seqs
    }
