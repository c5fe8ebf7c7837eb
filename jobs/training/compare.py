"""`ringfence models compare`: two versions on the holdout, on the graph as it is now."""

from __future__ import annotations

from ringfence.connector.errors import ModelError
from ringfence.connector.neo4j.read.sync import Progress
from ringfence.connector.store.lifecycle.activations import activations_of
from ringfence.connector.store.trail.sound_record import require_sound_model
from ringfence.jobs.lifecycle.comparison import HoldoutReport, holdout_report
from ringfence.jobs.lifecycle.promotion import find_version
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.evaluated import mark_evaluated
from ringfence.jobs.training.comparison import compare_and_record, load_version


def run_comparison(
    workspace: Workspace,
    version: str,
    against: str | None = None,
    progress: Progress = lambda _what, _done, _all: None,
) -> HoldoutReport:
    """Compare a version with another one, by default with the active one, and record it.

    The active version alone is compared with the baselines.
    """
    first = find_version(workspace, version)
    active = activations_of(workspace.store, workspace.project)
    other = find_version(workspace, against) if against else active[-1].version if active else None
    if against is not None and other == first:
        raise ModelError(
            found=f"{first} on both sides",
            needed="two versions",
            next_step=f"ringfence models compare {first}   (beside the baselines alone)",
        )
    load_version(workspace, first)  # before the mirror follows another mapping
    with write_session(workspace, progress) as session:
        for one in {first, other} - {None}:
            require_sound_model(session.writer, str(one))
        mirror = read_graph(workspace, session.writer, progress).mirror
        mark_evaluated(workspace, mirror)
        done = compare_and_record(
            workspace, session.writer, mirror, first, None if other == first else other, progress
        )
        save_graph(workspace, mirror)
    return holdout_report(done)
