"""Runs of which only early classes are known when a version is trained.

If the mules of a run are known after a day and its other accounts after a week, the newest runs
give mules alone: as calibration nodes they would be too many. If the calibration set grows, such
nodes wait until their run is settled (`jobs.scoring.calibration`). Under frozen calibration no node
joins later: they are trained on instead.
"""

from __future__ import annotations

from ringfence.connector.mirror import Mirror
from ringfence.connector.store.calibration.joined import run_counts
from ringfence.connector.store.calibration.known import KnownNodes
from ringfence.jobs.project.promise import terms_for_training
from ringfence.jobs.project.sealed_basis import on_record
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.settled_runs import MIN_SETTLED_NODES, settled_at_training
from ringfence.jobs.training.split import Split, train_instead

NO_VERSION = ""


def calibrate_settled(workspace: Workspace, mirror: Mirror, split: Split) -> tuple[Split, str]:
    """Return the split without calibration nodes of unsettled runs, and a sentence on it.

    Nothing is done if the calibration set grows, if each class calibrates itself alone, or if too
    few calibration nodes would be left.
    """
    terms = terms_for_training(workspace.settings.conformal)
    if terms.calibration_kind.uses_recent_labels or terms.promise_kind.per_class:
        return split, ""
    early = _nodes_of_early_runs(workspace)
    fair = train_instead(mirror, split, early)
    moved = len(split.calibration) - len(fair.calibration)
    if not moved:
        return split, ""
    nodes = f"{moved:,} labelled nodes are of runs whose other classes are not known yet"
    if len(fair.calibration) < MIN_SETTLED_NODES:
        return split, f"{nodes}; they calibrate all the same, since few others are there"
    return fair, f"{nodes}: they are trained on and do not calibrate"


def _nodes_of_early_runs(workspace: Workspace) -> set[str]:
    """The nodes of unsettled runs, of a snapshot in which runs and classes are as they were sealed.

    Who is in which run is in the digests of the runs' predictions.
    """
    with on_record(workspace) as (held, basis):
        basis.require_runs()
        basis.require_labels()
        known = KnownNodes(held.store, held.project, NO_VERSION)
        ready = settled_at_training(known.counts(), run_counts(held.store, held.project))
        nodes = known.all()
        basis.require_predictions({node.evaluated_in for node in nodes})
    return {node.node_key for node in nodes if node.evaluated_in not in ready}
