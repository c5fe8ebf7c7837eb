"""`ringfence rescore`: evaluate nodes again on purpose, with a reason, and without a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringfence.connector.errors import ConfigError, GraphError
from ringfence.connector.keys import typed_candidates
from ringfence.connector.mirror import Mirror
from ringfence.connector.progress import Progress, no_progress
from ringfence.connector.store.audit_chain.preflight_check import require_sound_record
from ringfence.connector.store.models import active_manifest
from ringfence.connector.store.rescores import record_rescores
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project import model_files
from ringfence.jobs.project.graph_read import read_graph, save_graph
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.sealed_basis import on_record
from ringfence.jobs.project.session import write_session
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.evaluation_flags import mark_evaluated
from ringfence.jobs.scoring.node_evaluation import evaluate_nodes, prediction_table
from ringfence.jobs.scoring.version_on_graph import (
    calibrate_on_record,
    require_active_network,
    require_runnable,
)
from ringfence.jobs.telemetry.traced_run import traced

NO_GUARANTEE = (
    "no guarantee: the promise holds for a node's first set only; these are kept apart and count "
    "in no coverage"
)


@dataclass(frozen=True, slots=True)
class RescoreReport:
    """The sets of the later evaluation, by typed key, with the reason that is on record."""

    reason: str
    model: str
    sets: dict[str, tuple[str, ...]]
    guarantee: str = NO_GUARANTEE


@traced("rescore")
def run_rescoring(
    workspace: Workspace,
    keys: Sequence[str],
    reason: str,
    progress: Progress = no_progress,
) -> RescoreReport:
    """Evaluate `keys` (as typed on a command line) on the graph as it is now."""
    if not reason.strip():
        raise ConfigError(
            found="no reason was given",
            needed="a reason for the record",
            next_step='ringfence rescore KEY --reason "the customer appealed"',
        )
    with write_session(workspace, progress, require_active_network) as session:
        require_sound_record(session.writer)
        recorded = active_manifest(workspace.store, workspace.project)
        require_mapping(workspace.mapping, recorded)
        model = model_files.load_model(workspace.models, recorded)
        engine_of(workspace.settings.engine).require_network(model.network)
        mirror = read_graph(workspace, session.writer, progress).mirror
        mark_evaluated(workspace, mirror, session.writer)
        rows = np.array([_row(mirror, key) for key in keys], np.int64)
        require_runnable(workspace, model, mirror)
        with on_record(workspace) as (held, basis):
            basis.require_active(model.version)
            version = calibrate_on_record(held, basis, model, mirror)
        calibrated = replace(version, workspace=workspace)
        evaluation = evaluate_nodes(calibrated, rows)
        later = prediction_table(calibrated, rows, evaluation).records()
        alpha = workspace.settings.conformal.first_alpha
        record_rescores(session.writer, model.version, alpha, reason, later)
        save_graph(workspace, mirror)
        engine_of(workspace.settings.engine).close_tables(workspace.tables, model, mirror)
    sets = {prediction.node_key: prediction.classes for prediction in later}
    return RescoreReport(reason, model.version, sets)


def _row(mirror: Mirror, key: str) -> int:
    """Return the row of a key that a person typed: a number or a text, whichever the graph has."""
    for row in mirror.find(typed_candidates(key)).tolist():
        if row >= 0:
            return int(row)
    raise GraphError(
        found=f"no node with the key {key} is in the graph",
        needed="keys of existing nodes",
        next_step="ringfence status",
    )
