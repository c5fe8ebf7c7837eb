"""`[model] shadow = true`: the newest candidate scores the nodes of a run too, only in SQL.

The shadow part begins when the run is closed and the mirror is saved: whatever happens to it, the
run is complete. Its sets are calibrated as they would be if the candidate were taken into use now,
at the alphas themselves. They are in no graph, count in no coverage and spend no guarantee. Nodes
whose class becomes known here may help to choose the candidate, so they will never calibrate it
(`connector.store.shadow.consulted`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from ringfence.connector import fault_points
from ringfence.connector.errors import describe_error
from ringfence.connector.mirror import Mirror
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.store.lifecycle.activations import newest_candidate
from ringfence.connector.store.models import manifest_of
from ringfence.connector.store.shadow.consulted import shadowed_runs
from ringfence.connector.store.shadow.sets import ShadowRun, record_shadow
from ringfence.connector.store.writer import Writer
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project import model_files
from ringfence.jobs.project.mapping_digest import require_mapping
from ringfence.jobs.project.sealed_basis import on_record
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.due import DueNodes
from ringfence.jobs.scoring.node_evaluation import evaluate_nodes, prediction_table
from ringfence.jobs.scoring.version_on_graph import calibrate_on_record, require_runnable

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """A candidate's shadow sets of a run: how many, of what average size; or why none."""

    version: str
    sets: int
    mean_size: float | None
    n_calibration: int
    failed: str | None = None


def shadow_run(
    workspace: Workspace, writer: Writer, mirror: Mirror, due: DueNodes, seq: int
) -> ShadowReport | None:
    """Score the nodes of run `seq` with the newest candidate; None if there is no candidate.

    Nothing that happens here reaches the caller: a failure is a row of its own and a line in the
    log, and the next run tries again with its own nodes.
    """
    if not workspace.settings.model.shadow:
        return None
    version: str | None = None
    try:
        version = newest_candidate(workspace.store, workspace.project)
        if version is None:
            return None
        fault_points.reach("before shadow")
        row, sets = _evaluate(workspace, version, mirror, due, seq)
        record_shadow(writer, row, sets)
        size = float(sets.sets.sum() / max(len(sets), 1))
        return ShadowReport(version, len(sets), size, row.n_calibration)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not harm the run
        return _failed(writer, version or "", seq, error)


def _evaluate(
    workspace: Workspace, version: str, mirror: Mirror, due: DueNodes, seq: int
) -> tuple[ShadowRun, PredictionTable]:
    recorded = manifest_of(workspace.store, workspace.project, version)
    require_mapping(workspace.mapping, recorded)
    model = model_files.load_model(workspace.models, recorded)
    require_runnable(workspace, model, mirror)
    with on_record(workspace) as (held, basis):
        basis.require_never_used(version)
        calibrated = calibrate_on_record(
            held,
            basis,
            model,
            mirror,
            at_alpha=True,
            consulted=shadowed_runs(held.store, held.project, version),
            tables=workspace.shadow_tables,
        )
        basis.require_shadow_counts(version)
    candidate = replace(calibrated, workspace=workspace)
    evaluation = evaluate_nodes(candidate, due.rows)
    engine_of(workspace.settings.engine).close_tables(candidate.tables, model, mirror)
    sets = prediction_table(candidate, due.rows, evaluation)
    terms = candidate.terms
    row = ShadowRun(
        version=version,
        seq=seq,
        at_ns=0,
        rule=terms.rule,
        score=terms.score,
        alpha=candidate.settings.first_alpha,
        promise=terms.promise,
        n_calibration=evaluation.result.n_calibration,
        n_sets=len(sets),
    )
    return row, sets


def _failed(writer: Writer, version: str, seq: int, error: Exception) -> ShadowReport:
    """Record why there are no sets; if even that fails, log it.

    No message or traceback of a defect: it may hold a value of the graph.
    """
    reason = describe_error(error)[:500]
    LOG.warning("the shadow sets of run %s were not made: %s", seq, reason)
    try:
        record_shadow(writer, ShadowRun(version, seq, 0, "", "", 0.0, "", 0, 0, reason), None)
    except Exception as second:  # noqa: BLE001 - the run stands whatever becomes of its shadow
        LOG.warning("nor could that be written down: %s", describe_error(second))
    return ShadowReport(version, 0, None, 0, reason)
