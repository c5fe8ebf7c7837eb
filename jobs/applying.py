"""Project decided runs onto the graph, and finish those that a crash left half-way."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence

from ringfence.connector import chain, checkpoints, projection, runs
from ringfence.connector.ahead import ahead
from ringfence.connector.errors import StoreError
from ringfence.connector.models import manifest_of
from ringfence.connector.projection import PreparedSets
from ringfence.connector.refresh import Progress
from ringfence.connector.runs import Writer
from ringfence.jobs.stopwatch import Stopwatch
from ringfence.jobs.workspace import Workspace


def refuse_older_store(workspace: Workspace, writer: Writer) -> None:
    """Refuse an audit store that was restored from a backup older than what the graph shows.

    Tokens alone don't tell: every attempt takes a new one, and would catch up. A run is decided in
    SQL before the graph shows it, so the run that SQL would decide next can't be there.
    """
    coming = runs.next_seq(workspace.store, workspace.project)
    if projection.has_run(workspace.graph, workspace.project, coming):
        raise StoreError(
            found=f"the graph shows run {coming}, which the audit store has never decided: the "
            "store is older than the graph",
            needed="the audit store that decided that run; scoring on would evaluate nodes twice",
            next_step="restore the newest backup of the audit store",
        )
    token = projection.fence_token(workspace.graph, workspace.project)
    if token > writer.lease.token:
        raise StoreError(
            found=f"the graph was written with lease {token}, but the audit store only knows of "
            f"{writer.lease.token}: it is older than the graph",
            needed="the audit store that decided those runs; scoring on would evaluate nodes twice",
            next_step="restore the newest backup of the audit store",
        )


def anchor_head(workspace: Workspace, writer: Writer) -> None:
    """Let the graph remember the audit chain's newest entry."""
    with workspace.store.reading() as connection:
        head = chain.head(connection, workspace.project)
    if head is not None:
        projection.anchor(workspace.graph, writer.lease, *head)


def recover(workspace: Workspace, writer: Writer, progress: Progress) -> tuple[int, ...]:
    """Finish the runs that a crash left decided: replay what is stored, never compute again.

    The graph has grown since; a set computed now would be a second look at the same node.
    """
    unfinished = runs.undone(workspace.store, workspace.project)
    for seq in unfinished:
        apply(workspace, writer, seq, progress, Stopwatch())
    return tuple(unfinished)


def apply(
    workspace: Workspace, writer: Writer, seq: int, progress: Progress, watch: Stopwatch
) -> None:
    """Project a decided run onto the graph, then close it."""
    row = runs.one_run(workspace.store, workspace.project, seq)
    classes = json.loads(manifest_of(workspace.store, workspace.project, row.model))["classes"]
    projection.write_run(workspace.graph, writer.lease, row, classes)
    checkpoints.at("run in graph")
    missing: list[str] = []
    done = 0
    for sets in ahead(_prepared(workspace, seq, classes)):
        checkpoints.at("before block")
        missing += projection.write_sets(
            workspace.graph, writer.lease, workspace.mapping, row, sets
        )
        checkpoints.at("after block")
        done += len(sets.keys)
        progress("sets", done, row.n_evaluated)
    watch.lap("write graph")
    checkpoints.at("before close")
    runs.close_run(writer, seq, missing, watch.seconds)
    checkpoints.at("closed")
    anchor_head(workspace, writer)


def _prepared(
    workspace: Workspace, seq: int, classes: Sequence[str]
) -> Generator[PreparedSets, None, None]:
    """Yield a run's stored sets in blocks: `ahead` makes one while Neo4j writes the one before."""
    rows = workspace.settings.engine.write_rows
    for block in runs.payload(workspace.store, workspace.project, seq, rows):
        yield projection.prepare_sets(block, classes)
