"""`[model] shadow = true`: the newest candidate scores the nodes of a run too, in SQL alone.

The shadow part begins when the run is closed and the mirror is saved: whatever becomes of it, the
run stands. Its sets are calibrated as they would be if the candidate were taken into use now, at
the alphas themselves. They are in no graph, count in no coverage and spend no guarantee. Nodes
whose class becomes known here may help to choose the candidate, so they will never calibrate it
(`connector.store.shadow.consulted`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial

from ringfence.connector import fault_points
from ringfence.connector.errors import describe_error
from ringfence.connector.mirror import Mirror
from ringfence.connector.prediction_table import PredictionTable
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.store.lifecycle.activations import newest_candidate
from ringfence.connector.store.models import manifest_of
from ringfence.connector.store.shadow.consulted import shadowed_runs
from ringfence.connector.store.shadow.sets import ShadowRun, record_shadow
from ringfence.connector.store.writer import Writer
from ringfence.jobs.engines.registry import engine_of
from ringfence.jobs.project import model_files
from ringfence.jobs.project.model_inputs import require_mapping
from ringfence.jobs.project.promise import terms_in_force
from ringfence.jobs.project.promise_check import (
    require_calibration,
    require_calibration_of_all,
    require_promised_classes,
)
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring import inference
from ringfence.jobs.scoring.calibration.living_set import living_set
from ringfence.jobs.scoring.decided import fill_empty_sets, predictions
from ringfence.jobs.scoring.due import DueNodes
from ringfence.jobs.scoring.evaluate import evaluate_rows, require_width
from ringfence.jobs.scoring.scored_rows import score_rows
from ringfence.jobs.scoring.stopwatch import Stopwatch

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What a candidate did beside a run: how many sets, of what average size; or why none."""

    version: str
    sets: int
    mean_size: float | None
    n_calibration: int
    failed: str | None = None


def shadow_run(
    workspace: Workspace, writer: Writer, mirror: Mirror, due: DueNodes, seq: int
) -> ShadowReport | None:
    """Let the newest candidate score the nodes of run `seq`; None where there is none to.

    Nothing that happens here reaches the caller: a failure is a row of its own and a line in the
    log, and the next run tries again with its own nodes.
    """
    if not workspace.settings.model.shadow:
        return None
    version = ""
    try:
        found = newest_candidate(workspace.store, workspace.project)
        if found is None:
            return None
        version = found
        fault_points.reach("before shadow")
        row, sets = _evaluate(workspace, version, mirror, due, seq)
        record_shadow(writer, row, sets)
        size = float(sets.sets.sum() / max(len(sets), 1))
        return ShadowReport(version, len(sets), size, row.n_calibration)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not harm the run
        return _failed(writer, version, seq, error)


def _evaluate(
    workspace: Workspace, version: str, mirror: Mirror, due: DueNodes, seq: int
) -> tuple[ShadowRun, PredictionTable]:
    recorded = manifest_of(workspace.store, workspace.project, version)
    require_mapping(workspace.mapping, recorded)
    model = model_files.load_model(workspace.models, recorded)
    require_width(mirror, model)
    conformal = workspace.settings.conformal
    terms = terms_in_force(conformal, model.manifest)
    require_calibration(conformal, terms)
    require_promised_classes(conformal, terms, model.classes)
    require_calibration_of_all(terms, model.manifest)
    base = calibration_members(workspace.store, workspace.project, version, model.classes)
    runs = shadowed_runs(workspace.store, workspace.project, version)
    living = living_set(workspace, model, terms, base, consulted=runs)
    graph = inference.inference_graph(mirror, workspace.mapping)
    tables = workspace.shadow_tables
    evaluated = evaluate_rows(
        workspace, model, mirror, list(living.members), graph, due.rows, Stopwatch(),
        score=partial(score_rows, tables=tables),
    )  # fmt: skip
    if conformal.nonempty:
        evaluated = replace(evaluated, result=fill_empty_sets(evaluated.result)[0])
    engine_of(workspace.settings.engine).close_tables(tables, model, mirror)
    sets = predictions(mirror, due.rows, evaluated.result, evaluated.degree, model.classes)
    row = ShadowRun(
        version=version,
        seq=seq,
        at_ns=0,
        rule=terms.rule,
        score=terms.score,
        alpha=conformal.first_alpha,
        promise=terms.promise,
        n_calibration=evaluated.result.n_calibration,
        n_sets=len(sets),
    )
    return row, sets


def _failed(writer: Writer, version: str, seq: int, error: Exception) -> ShadowReport:
    """Write down why there are no sets; where even that fails, the log has it.

    No message or traceback of a defect: it may hold a value of the graph.
    """
    words = describe_error(error)[:500]
    LOG.warning("the shadow sets of run %s were not made: %s", seq, words)
    try:
        record_shadow(writer, ShadowRun(version, seq, 0, "", "", 0.0, "", 0, 0, words), None)
    except Exception as second:  # noqa: BLE001 - the run stands whatever becomes of its shadow
        LOG.warning("nor could that be written down: %s", describe_error(second))
    return ShadowReport(version, 0, None, 0, words)
