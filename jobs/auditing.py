"""`ringfence audit`: classes that became known since, and whether the promise was kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from ringfence.connector import checkpoints, coverage, groups, labels, projection, runs, watermark
from ringfence.connector.errors import ConfigError
from ringfence.connector.labels import Found
from ringfence.connector.models import class_names
from ringfence.connector.refresh import Progress
from ringfence.connector.runs import Writer
from ringfence.connector.store import Store
from ringfence.connector.tallies import tallies
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.advising import advise_now_and_then
from ringfence.jobs.alarms import AlarmState, raise_alarms
from ringfence.jobs.applying import anchor_head, recover, refuse_older_store
from ringfence.jobs.audit_store import open_audit
from ringfence.jobs.coverage_rows import TOTAL, coverage_rows
from ringfence.jobs.settings import Settings
from ringfence.jobs.workspace import Workspace

DAY_NS = 86_400 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What `ringfence audit` found: classes newly known or changed, coverage rows, alarms."""

    newly_known: int
    changed: int
    rows: tuple[dict[str, Any], ...]
    alarms: tuple[AlarmState, ...]

    @property
    def alarm(self) -> bool:
        """Whether some alarm fires."""
        return any(one.state == "firing" for one in self.alarms)

    @property
    def total(self) -> dict[str, Any] | None:
        """The newest model's row over all its runs."""
        return next((row for row in reversed(self.rows) if row["slice"] == TOTAL), None)


def run_audit(
    workspace: Workspace, progress: Progress = lambda _what, _done, _all: None
) -> AuditReport:
    """Ask the graph for classes, write coverage to SQL and to the graph, raise alarms."""
    workspace.require_migrated()
    with workspace.writer() as writer:
        refuse_older_store(workspace, writer)
        recover(workspace, writer, progress)
        new, changed = _note_classes(workspace, writer, progress)
        _note_groups(workspace, writer, progress)
        checkpoints.at("labels read")
        rows = count_coverage(workspace.store, workspace.settings)
        checkpoints.at("before coverage")
        coverage.record_coverage(writer, rows)
        stored = coverage.stored(workspace.store, workspace.project)
        checkpoints.at("coverage in sql")
        projection.show_coverage(workspace.graph, writer.lease, stored)
        checkpoints.at("coverage in graph")
        advise_now_and_then(workspace, writer)
        alarms = raise_alarms(writer, workspace.settings)
        anchor_head(workspace, writer)
    return AuditReport(new, changed, tuple(rows), alarms)


def count_coverage(
    store: Store, settings: Settings, as_of_ns: int | None = None
) -> list[dict[str, Any]]:
    """Return the coverage rows as they are now, or as they were known to be at any time before."""
    project = settings.project
    counts = {version: len(names) for version, names in class_names(store, project).items()}
    by_run = tallies(store, project, counts, "run", as_of_ns)
    by_class = tallies(store, project, counts, "class", as_of_ns)
    by_group = tallies(store, project, counts, "group", as_of_ns) if settings.audit.groups else []
    return coverage_rows(by_run, by_class, by_group, settings.audit.window_runs)


def coverage_as_of(settings: Settings, moment: str) -> list[dict[str, Any]]:
    """Return the coverage rows as they were known at an ISO time; nothing is written."""
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        raise ConfigError(
            found=f"--as-of {moment!r}", needed="an ISO time such as 2026-01-31T12:00"
        ) from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    with open_audit(settings) as store:
        return count_coverage(store, settings, int(at.timestamp() * NANOSECONDS))


def _note_classes(workspace: Workspace, writer: Writer, progress: Progress) -> tuple[int, int]:
    classes = class_names(workspace.store, workspace.project)
    labelled_at = workspace.settings.graph.labelled_at
    blocks = _asked(workspace) if labelled_at is None else _read(workspace, labelled_at)
    mark = None if labelled_at is None else watermark.horizon(workspace.graph).watermark_ns
    new = changed = seen = 0
    for block, found in blocks:
        fresh = [row for row in block if _differs(row, found)]
        judged = [labels.judge(row, found[row.node_key], classes[row.model]) for row in fresh]
        labels.record_labels(writer, judged)
        new += sum(row.label is None for row in fresh)
        changed += sum(row.label is not None for row in fresh)
        seen += len(block)
        progress("predictions asked about", seen, 0)
    if mark is not None:
        coverage.set_mark(writer, labels_ns=mark)
    return new, changed


def _differs(row: Row[Any], found: Mapping[str, Found]) -> bool:
    return row.node_key in found and found[row.node_key].class_ != row.label


def _asked(workspace: Workspace) -> Iterator[tuple[list[Row[Any]], dict[str, Found]]]:
    """Ask for the keys whose class isn't known yet, or was noticed lately."""
    days = workspace.settings.audit.recheck_days
    with workspace.store.reading() as connection:
        again = workspace.store.now_ns(connection) - int(days * DAY_NS)
    rows = workspace.settings.engine.read_rows
    for block in labels.pending(workspace.store, workspace.project, rows, again if days else None):
        keys = [row.node_key for row in block]
        yield block, labels.known_classes(workspace.graph, workspace.mapping, keys)


def _read(
    workspace: Workspace, labelled_at: str
) -> Iterator[tuple[list[Row[Any]], dict[str, Found]]]:
    """Read the classes set since the last audit, going back by the overlap."""
    mark = coverage.mark_of(workspace.store, workspace.project)
    since = 0 if mark is None or mark.labels_ns is None else mark.labels_ns
    engine = workspace.settings.engine
    since = max(0, since - int(engine.overlap_seconds * NANOSECONDS))
    for found in labels.classes_since(
        workspace.graph, workspace.mapping, labelled_at, since, engine.read_rows
    ):
        yield labels.predictions_of(workspace.store, workspace.project, list(found)), found


def _note_groups(workspace: Workspace, writer: Writer, progress: Progress) -> None:
    names = workspace.settings.audit.groups
    mark = coverage.mark_of(workspace.store, workspace.project)
    done = 0
    for seq in runs.applied_after(
        workspace.store, workspace.project, mark.grouped_seq if mark else 0
    ):
        rows = workspace.settings.engine.read_rows
        for block in runs.payload(workspace.store, workspace.project, seq, rows) if names else ():
            keys = [row.node_key for row in block]
            found = groups.groups_of(workspace.graph, workspace.mapping, names, keys)
            groups.record_groups(writer, found)
            done += len(block)
            progress("groups", done, 0)
        coverage.set_mark(writer, grouped_seq=seq)
