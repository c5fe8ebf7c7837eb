"""`ringfence reconcile`: find what the graph and the stores disagree on, show it, repair it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ringfence.connector.neo4j.compare import ON_ANOTHER_NODE
from ringfence.connector.neo4j.write import prediction_sets
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store import predictions, runs
from ringfence.connector.store.models import manifest_of
from ringfence.connector.store.writer import Writer
from ringfence.jobs.integrity.graph_check import ProjectionDifference, find_differences
from ringfence.jobs.integrity.mirror_change import MirrorChange, compare_mirrors
from ringfence.jobs.project.graph_read import load_graph, read_graph, save_graph
from ringfence.jobs.project.sealed_basis import on_record
from ringfence.jobs.project.session import Session, lease_session, write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.corrections import correct_all, find_all
from ringfence.jobs.scoring.evaluation_flags import mark_evaluated
from ringfence.jobs.telemetry.traced_run import traced

MAX_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What was found, and whether it was repaired.

    `corrected` counts calibration nodes whose class in the graph is not the one that counts.
    """

    finished_runs: tuple[int, ...]
    mirror: MirrorChange
    corrected: int
    projections: dict[str, int]
    examples: tuple[ProjectionDifference, ...]
    repaired: bool

    @property
    def clean(self) -> bool:
        """Whether there was nothing to repair."""
        repaired = self.finished_runs or self.corrected or self.projections
        return not repaired and self.mirror.clean


@traced("reconcile")
def run_reconcile(
    workspace: Workspace,
    *,
    repair: bool,
    progress: Progress = no_progress,
) -> ReconcileReport:
    """Compare everything; with `repair`, put it right. Nothing is ever computed again."""
    if repair:
        with write_session(workspace, progress) as session:
            return _compare_stores(workspace, session, progress)
    workspace.require_migrated()
    with lease_session(workspace):
        return _compare_stores(workspace, None, progress)


def _compare_stores(
    workspace: Workspace, session: Session | None, progress: Progress
) -> ReconcileReport:
    """Compare mirror, graph and SQL; in a write session, repair what differs."""
    unfinished = session.recovered if session else runs.undone(workspace.store, workspace.project)
    before = load_graph(workspace)
    after = read_graph(workspace, session.writer if session else None, progress, whole=True).mirror
    change = compare_mirrors(before, after)
    differences = list(find_differences(workspace))
    corrected = len(find_all(workspace)[1])
    if session:
        correct_all(workspace, session.writer)
        _repair(workspace, session.writer, differences)
        mark_evaluated(workspace, after, session.writer)
        save_graph(workspace, after)
    kinds = dict(Counter(str(difference.kind) for difference in differences))
    return ReconcileReport(
        tuple(unfinished),
        change,
        corrected,
        kinds,
        tuple(differences[:MAX_EXAMPLES]),
        session is not None,
    )


def _repair(
    workspace: Workspace, writer: Writer, differences: Sequence[ProjectionDifference]
) -> None:
    with on_record(workspace) as (held, basis):
        basis.require_runs()
        _restore_runs(held, writer)
    for seq, group in groupby(differences, key=lambda difference: difference.seq):
        by_kind: dict[str, list[str]] = {}
        for difference in group:
            by_kind.setdefault(difference.kind, []).append(difference.node_key)
        damaged = [*by_kind.get("not projected", []), *by_kind.get("set differs", [])]
        if damaged:
            with on_record(workspace) as (held, basis):
                basis.require_runs()
                basis.require_predictions({seq})
                _project_again(held, writer, seq, damaged)
        if orphaned := by_kind.get("stray"):
            keys = [key.removesuffix(ON_ANOTHER_NODE) for key in orphaned]
            prediction_sets.remove_orphaned(workspace.graph, writer.lease, keys)
        predictions.mark_gone(writer, by_kind.get("node gone", []))


def _restore_runs(workspace: Workspace, writer: Writer) -> None:
    """Write the runs that an older backup of the graph lacks, also those without a node left."""
    applied = runs.applied_after(workspace.store, workspace.project, 0)
    for seq in prediction_sets.missing_runs(workspace.graph, workspace.project, applied):
        run = runs.one_run(workspace.store, workspace.project, seq)
        classes = json.loads(manifest_of(workspace.store, workspace.project, run.model))["classes"]
        prediction_sets.write_run(workspace.graph, writer.lease, run, classes)


def _project_again(workspace: Workspace, writer: Writer, seq: int, keys: Sequence[str]) -> None:
    run = runs.one_run(workspace.store, workspace.project, seq)
    classes = json.loads(manifest_of(workspace.store, workspace.project, run.model))["classes"]
    prediction_sets.write_run(workspace.graph, writer.lease, run, classes)
    size = workspace.settings.engine.write_rows
    for start in range(0, len(keys), size):
        block = predictions.some_predictions(
            workspace.store, workspace.project, keys[start : start + size]
        )
        sets = prediction_sets.prepare_sets(block, classes, run.lowest_level)
        prediction_sets.repair_sets(workspace.graph, writer.lease, workspace.mapping, run, sets)
