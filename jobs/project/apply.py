"""Project decided runs onto the graph, and finish those that a crash left half-way."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence

from ringfence.connector import fault_points
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.write import prediction_sets
from ringfence.connector.neo4j.write.prediction_sets import PreparedSets
from ringfence.connector.progress import Progress
from ringfence.connector.records import Run
from ringfence.connector.store import predictions, runs
from ringfence.connector.store.models import manifest_of
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.sealed_basis import on_record
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.telemetry.stopwatch import Stopwatch


def recover(workspace: Workspace, writer: Writer, progress: Progress) -> tuple[int, ...]:
    """Finish the runs that a crash left decided but not applied: replay, never compute again.

    The graph has grown since; a set computed now would be a second evaluation of the same node.
    What is replayed is read from the snapshot in which it was compared with its seal.
    """
    unfinished = runs.undone(workspace.store, workspace.project)
    for seq in unfinished:
        with on_record(workspace) as (held, basis):
            basis.require_runs()
            basis.require_predictions({seq})
            apply(held, writer, seq, progress, Stopwatch())
    return tuple(unfinished)


def apply(
    workspace: Workspace, writer: Writer, seq: int, progress: Progress, stopwatch: Stopwatch
) -> None:
    """Project a decided run onto the graph, then close it."""
    run = runs.one_run(workspace.store, workspace.project, seq)
    classes = json.loads(manifest_of(workspace.store, workspace.project, run.model))["classes"]
    prediction_sets.write_run(workspace.graph, writer.lease, run, classes)
    fault_points.reach("run in graph")
    missing: list[str] = []
    done = 0
    for sets in prefetch(_prepared(workspace, run, classes)):
        fault_points.reach("before block")
        missing += prediction_sets.write_sets(
            workspace.graph, writer.lease, workspace.mapping, run, sets
        )
        fault_points.reach("after block")
        done += len(sets.keys)
        progress("sets", done, run.n_evaluated)
    stopwatch.lap("write graph")
    fault_points.reach("before close")
    runs.close_run(writer, seq, missing, stopwatch.seconds)
    fault_points.reach("closed")


def _prepared(
    workspace: Workspace, run: Run, classes: Sequence[str]
) -> Generator[PreparedSets, None, None]:
    """Yield a run's stored sets in blocks; one is prepared while Neo4j writes the one before."""
    rows = workspace.settings.engine.write_rows
    for block in predictions.payload(workspace.store, workspace.project, run.seq, rows):
        yield prediction_sets.prepare_sets(block, classes, run.lowest_level)
