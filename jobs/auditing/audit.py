"""`ringfence audit`: classes that became known since, and whether the promise was kept."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ringfence.connector import fault_points
from ringfence.connector.alarm_records import AlarmState
from ringfence.connector.errors import ConfigError
from ringfence.connector.incarnation import belongs_to
from ringfence.connector.keys import typed_key_of
from ringfence.connector.neo4j.classes import NodeClass, classes_since, known_classes
from ringfence.connector.neo4j.groups import node_groups
from ringfence.connector.neo4j.read import watermark
from ringfence.connector.neo4j.write import coverage_audits
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.records import AuditMark, CoverageRow, KnownClass, NodeGroup
from ringfence.connector.store import coverage, labels, predictions, runs
from ringfence.connector.store.alarms import CoverageDecline
from ringfence.connector.store.audit_chain.basis.mark import mark_on_record
from ringfence.connector.store.audit_chain.basis_check import Basis
from ringfence.connector.store.audit_chain.preflight_check import require_sound_record
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.calibration.promise_groups import class_schedules, group_schedules
from ringfence.connector.store.calibration.schedule import CalibratedRun, calibration_schedule
from ringfence.connector.store.engine import Store
from ringfence.connector.store.groups import record_groups
from ringfence.connector.store.labels import OpenPrediction
from ringfence.connector.store.lifecycle.activations import active_version
from ringfence.connector.store.models import active_manifest, class_names, manifest_of
from ringfence.connector.store.queries.totals import worst_promise, worst_total
from ringfence.connector.store.shadow.coverage import record_shadow_coverage
from ringfence.connector.store.tallies import Tally, tallies
from ringfence.connector.store.writer import Writer
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.auditing.advice import advise_now_and_then
from ringfence.jobs.auditing.alarms.state import raise_alarms
from ringfence.jobs.auditing.coverage import coverage_rows, last_totals
from ringfence.jobs.auditing.coverage_law import uses_recent_labels
from ringfence.jobs.auditing.sample_coverage import sample_rows
from ringfence.jobs.auditing.sealed_rows import keep_sealed
from ringfence.jobs.auditing.unsettled_rows import find_unsettled
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.audit_store import open_audit
from ringfence.jobs.project.holdout import calibrating_share
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.sealed_basis import on_record
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.corrections import correct_all
from ringfence.jobs.telemetry.traced_run import note_step, traced
from ringfence.models.promise.base import PromiseKind
from ringfence.models.promise.options import PromiseOptions
from ringfence.models.promise.per_group import group_of_band
from ringfence.models.promise.registry import promise_named

DAY_NS = 86_400 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What `ringfence audit` found: classes newly known or changed, coverage rows, alarms.

    `corrected` counts calibration nodes whose class changed: later runs count with the new one.
    """

    newly_known: int
    changed: int
    corrected: int
    rows: tuple[CoverageRow, ...]
    alarms: tuple[AlarmState, ...]

    @property
    def alarm(self) -> bool:
        """Whether some alarm fires."""
        return any(alarm.state == "firing" for alarm in self.alarms)

    @property
    def total(self) -> CoverageRow | None:
        """The newest model's worst row over all runs of the same terms."""
        return worst_total(last_totals(self.rows))

    @property
    def verdict(self) -> CoverageRow | None:
        """The worst of all promises: for all nodes, a class or a group."""
        return worst_promise(self.total, [row for row in self.rows if row.own_promise])


@traced("audit")
def run_audit(workspace: Workspace, progress: Progress = no_progress) -> AuditReport:
    """Read classes from the graph, write coverage to SQL and to the graph, raise alarms."""
    with write_session(workspace, progress) as session:
        writer = session.writer
        require_sound_record(writer)
        _require_mapping(workspace)
        note_step("recover")
        mark = _read_mark(workspace, writer)
        new, changed, mark = _record_classes(workspace, writer, mark, progress)
        corrected = correct_all(workspace, writer)
        mark = _record_new_groups(workspace, writer, mark, progress)
        fault_points.reach("labels read")
        note_step("read classes")
        declines: list[CoverageDecline] = []
        rows = count_on_record(workspace, writer, declines)
        fault_points.reach("before coverage")
        note_step("count coverage")
        coverage.record_coverage(writer, rows)
        stored = coverage.stored(workspace.store, workspace.project)
        fault_points.reach("coverage in sql")
        record_shadow_coverage(writer)
        coverage_audits.write_coverage(workspace.graph, writer.lease, stored)
        fault_points.reach("coverage in graph")
        note_step("write coverage")
        advise_now_and_then(workspace, writer, mark)
        alarms = raise_alarms(writer, workspace.settings, declines)
        note_step("alarms")
    return AuditReport(new, changed, corrected, tuple(rows), alarms)


def _read_mark(workspace: Workspace, writer: Writer) -> AuditMark | None:
    """Read once how far audits have come, as the chain has it."""
    with workspace.store.at_one_moment() as store, store.reading() as connection:
        return mark_on_record(connection, workspace.project, writer.key)


def _require_mapping(workspace: Workspace) -> None:
    """Refuse to read classes under another mapping than the sets were made under."""
    if class_names(workspace.store, workspace.project):
        require_mapping(workspace.mapping, active_manifest(workspace.store, workspace.project))


def count_coverage(
    store: Store,
    settings: Settings,
    as_of_ns: int | None = None,
    declines: list[CoverageDecline] | None = None,
) -> list[CoverageRow]:
    """Return the coverage rows as they are now, or as they were known to be at any time before.

    Rows on record whose counts have not changed keep their words. `declines` takes the evidence
    that coverage fell.
    """
    project = settings.project
    counts = {version: len(names) for version, names in class_names(store, project).items()}
    by_run = tallies(store, project, counts, "run", as_of_ns)
    by_class = tallies(store, project, counts, "class", as_of_ns)
    promised = any(promise_named(tally.promise).slice == "group" for tally in by_run)
    wanted = promised or settings.audit.groups
    by_group = tallies(store, project, counts, "group", as_of_ns) if wanted else []
    living = {tally.model for tally in by_run if uses_recent_labels(tally)}
    shares = {
        version: calibrating_share(json.loads(manifest_of(store, project, version)))
        for version in living
    }
    schedules = {
        version: calibration_schedule(store, project, version, share)
        for version, share in shares.items()
    }
    names = class_names(store, project)
    of_parts: dict[tuple[str, str], Sequence[CalibratedRun]] = {}
    for version, promise, property_ in _promised_parts(by_run, living):
        by_name: dict[str, list[CalibratedRun]] = {}
        if promise.slice == "class":
            by_name = class_schedules(store, project, version, names[version], shares[version])
        elif promise.slice == "group" and property_ is not None:
            by_name = group_schedules(store, project, version, property_, shares[version])
        of_parts |= {(version, name): schedule for name, schedule in by_name.items()}
    window = settings.audit.window_runs
    unsettled = find_unsettled(store, settings, as_of_ns)
    rows = coverage_rows(
        by_run, by_class, by_group, window, schedules, of_parts, unsettled, declines
    )
    rows += _rows_of_sample(store, project, counts, as_of_ns)
    return rows if as_of_ns is not None else keep_sealed(rows, coverage.stored(store, project))


def count_on_record(
    workspace: Workspace, writer: Writer, declines: list[CoverageDecline]
) -> list[CoverageRow]:
    """Count coverage in one snapshot of SQL, in which what is counted is compared with its seal.

    Of a run whose row stays as it was, nothing but classes and terms is compared: its predictions
    were when the row was written.
    """
    project = workspace.project
    with workspace.store.at_one_moment() as store, store.reading() as connection:
        basis = Basis(connection, project, writer.key)
        basis.require_runs()
        basis.require_labels(counted=True)
        active = active_version(connection, project)
        basis.require_active(active)
        if active is not None:
            basis.require_model(active)
        basis.require_coverage()
        rows = count_coverage(store, workspace.settings, declines=declines)
        basis.require_predictions(coverage.changed_runs(store, project, rows), counted=True)
        if any(row.slice == "group" for row in rows):
            basis.require_groups()
    return rows


def _rows_of_sample(
    store: Store, project: str, class_counts: Mapping[str, int], as_of_ns: int | None
) -> list[CoverageRow]:
    """The rows of the audit sample; none where no run drew one."""
    sampled = tallies(store, project, class_counts, "sample", as_of_ns)
    times = {run.seq: run.decided_ns for run in run_counts(store, project)} if sampled else {}
    return sample_rows(sampled, times)


def _promised_parts(
    by_run: Sequence[Tally], versions: Container[str]
) -> set[tuple[str, PromiseKind, str | None]]:
    """Versions with their promises, and the properties whose values had one of their own."""
    return {
        (tally.model, promise_named(tally.promise), _group_of(tally.promise, tally.options))
        for tally in by_run
        if tally.model in versions
    }


def _group_of(promise: str, options: str) -> str | None:
    """The property whose values had a promise of their own."""
    if not promise_named(promise).needs_group:
        return None
    return PromiseOptions.recorded(json.loads(options)).group


def coverage_as_of(settings: Settings, moment: str) -> list[CoverageRow]:
    """Return the coverage rows as they were known at an ISO time; nothing is written."""
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        raise ConfigError(
            found=f"--as-of is {moment!r}", needed="an ISO time such as 2026-01-31T12:00"
        ) from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    with open_audit(settings) as store:
        return count_coverage(store, settings, int(at.timestamp() * NANOSECONDS))


Blocks = Iterator[tuple[list[OpenPrediction], dict[str, NodeClass]]]
"""Predictions, and the classes of the nodes that have some of their keys now, by typed key."""


def _record_classes(
    workspace: Workspace, writer: Writer, mark: AuditMark | None, progress: Progress
) -> tuple[int, int, AuditMark | None]:
    """Write the classes that became known or changed since; return how many of each, and the mark.

    Args:
        workspace: an open project.
        writer: of the session.
        mark: how far audits had come.
        progress: hears how many predictions were asked about.
    """
    classes = class_names(workspace.store, workspace.project)
    labelled_at = workspace.settings.graph.labelled_at
    blocks = (
        _ask_by_key(workspace) if labelled_at is None else _ask_since(workspace, mark, labelled_at)
    )
    unseen = workspace.settings.engine.unseen_transaction_seconds
    now_ns = (
        None if labelled_at is None else watermark.horizon(workspace.graph, unseen).watermark_ns
    )
    new = changed = asked = 0
    for block, nodes in blocks:
        known = _classes_of(workspace, block, nodes)
        news = [evaluated for evaluated in block if _is_news(evaluated, known)]
        judged = [
            labels.check_label(evaluated, known[evaluated.node_key], classes[evaluated.model])
            for evaluated in _read_on_record(workspace, writer, news)
        ]
        labels.record_labels(writer, judged)
        new += sum(evaluated.label is None for evaluated in news)
        changed += sum(evaluated.label is not None for evaluated in news)
        asked += len(block)
        progress("predictions asked about", asked, 0)
    if now_ns is not None:
        mark = coverage.set_mark(writer, mark, labels_ns=now_ns)
    return new, changed, mark


def _classes_of(
    workspace: Workspace, block: Sequence[OpenPrediction], nodes: Mapping[str, NodeClass]
) -> dict[str, KnownClass]:
    """The classes by record's key: a node's class only goes to its own prediction."""
    has_times = workspace.mapping.classified.created_at is not None
    return {
        evaluated.node_key: now.known
        for evaluated in block
        if (now := nodes.get(typed_key_of(evaluated.node_key))) is not None
        and belongs_to(evaluated, now.node, workspace.project, has_times)
    }


def _read_on_record(
    workspace: Workspace, writer: Writer, news: Sequence[OpenPrediction]
) -> list[OpenPrediction]:
    """Read predictions once more, in a snapshot in which their runs are compared with the chain."""
    if not news:
        return []
    keys = [evaluated.node_key for evaluated in news]
    with workspace.store.at_one_moment() as store, store.reading() as connection:
        basis = Basis(connection, workspace.project, writer.key)
        basis.require_runs()
        seqs = predictions.runs_of_nodes(connection, workspace.project, keys)
        basis.require_predictions(seqs)
        stored = labels.predictions_of(store, workspace.project, keys)
    asked = set(keys)  # later nodes with the same keys are not asked about
    return [evaluated for evaluated in stored if evaluated.node_key in asked]


def _is_news(evaluated: OpenPrediction, known: Mapping[str, KnownClass]) -> bool:
    now = known.get(evaluated.node_key)
    return now is not None and now.class_ != evaluated.label


def _ask_by_key(workspace: Workspace) -> Blocks:
    """Query the keys whose class isn't known yet, or was noticed lately."""
    days = workspace.settings.audit.recheck_days
    with workspace.store.reading() as connection:
        again = workspace.store.now_ns(connection) - int(days * DAY_NS)
    rows = workspace.settings.engine.read_rows
    for block in labels.pending(workspace.store, workspace.project, rows, again if days else None):
        keys = [evaluated.node_key for evaluated in block]
        yield block, known_classes(workspace.graph, workspace.mapping, workspace.project, keys)


def _ask_since(workspace: Workspace, mark: AuditMark | None, labelled_at: str) -> Blocks:
    """Read the classes set since the last audit, going back by the overlap."""
    since = 0 if mark is None or mark.labels_ns is None else mark.labels_ns
    engine = workspace.settings.engine
    since = max(0, since - int(engine.overlap_seconds * NANOSECONDS))
    for known in classes_since(
        workspace.graph,
        workspace.mapping,
        workspace.project,
        labelled_at,
        since,
        engine.read_rows,
    ):
        yield labels.predictions_of(workspace.store, workspace.project, list(known)), known


def _bands_on_record(workspace: Workspace, seq: int, rows: int) -> Iterator[list[tuple[str, str]]]:
    """Yield keys and bands of a run's nodes from a snapshot in which they are compared."""
    with on_record(workspace) as (held, basis):
        basis.require_runs()
        basis.require_predictions({seq}, counted=True)
        yield from predictions.payload_bands(held.store, held.project, seq, rows)


def _record_new_groups(
    workspace: Workspace, writer: Writer, mark: AuditMark | None, progress: Progress
) -> AuditMark | None:
    """Write the groups of the nodes that were evaluated since the last audit; return the mark.

    A group with a promise is the one that the node was evaluated in: its band is on record, even if
    the graph has changed since.
    """
    names = workspace.settings.audit.groups
    rows, done = workspace.settings.engine.read_rows, 0
    for seq in runs.applied_after(
        workspace.store, workspace.project, mark.grouped_seq if mark else 0
    ):
        run = runs.one_run(workspace.store, workspace.project, seq)
        promised = _group_of(run.promise, run.options)
        asked = [name for name in names if name != promised]
        for block in _bands_on_record(workspace, seq, rows) if asked or promised else ():
            keys = [key for key, _ in block]
            groups = node_groups(workspace.graph, workspace.mapping, asked, keys) if asked else []
            groups += [
                NodeGroup(key, promised, group)
                for key, band in (block if promised else ())
                if promised and (group := group_of_band(promised, band)) is not None
            ]
            record_groups(writer, keys, groups)
            done += len(keys)
            progress("groups", done, 0)
        mark = coverage.set_mark(writer, mark, grouped_seq=seq)
    return mark
