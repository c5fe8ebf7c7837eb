"""From the mirror and the model to a decision: sets of the due nodes, and the run's facts."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence import __version__
from ringfence.connector.errors import ModelError
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.sync import SyncResult
from ringfence.connector.records import Member, Prediction, RunFacts, Threshold
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.store.runs import Decision, finite
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.config.settings import ConformalSettings, Settings
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.model_inputs import NOT_BOUND, is_bound
from ringfence.jobs.project.network_inputs import uniforms_of
from ringfence.jobs.project.promise import PromiseTerms, options_of, terms_in_force
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring import inference
from ringfence.jobs.scoring.corrections import describe_corrections
from ringfence.jobs.scoring.due import DueNodes, find_due, leave_out_evaluated, recorded_policy
from ringfence.jobs.scoring.evaluated import mark_members
from ringfence.jobs.scoring.monitor import (
    Monitored,
    plan_monitoring,
    score_quantiles,
    update_monitor,
)
from ringfence.jobs.scoring.stopwatch import Stopwatch
from ringfence.models.conformal.evaluate import (
    CalibrationRule,
    Evaluation,
    Part,
    Promise,
    evaluate,
)
from ringfence.models.conformal.sets import fill_empty
from ringfence.models.conformal.weights import drift_weights
from ringfence.models.guarantee.law import guarantee
from ringfence.models.inference import InferenceGraph, neighbour_counts

NO_ROWS = np.empty(0, np.int64)
DAY_NS = 86_400 * NANOSECONDS


def decide_due(
    workspace: Workspace, model: SavedModel, read: SyncResult, stopwatch: Stopwatch
) -> tuple[DueNodes, Decision | None]:
    """Evaluate the due nodes on the graph as it is now; no decision where nobody is due."""
    mirror, settings = read.mirror, workspace.settings
    _check_width(mirror, model)
    mark_members(workspace, mirror, model.version)
    calibration = calibration_members(
        workspace.store, workspace.project, model.version, model.classes
    )
    graph = inference.inference_graph(mirror, workspace.mapping)
    policy = recorded_policy(settings.conformal, model)
    terms = terms_in_force(settings.conformal, model.manifest)
    due = find_due(mirror, graph, terms.rule, policy)
    due = leave_out_evaluated(workspace, mirror, due)
    if len(due.rows) == 0:
        stopwatch.lap("compute")
        return due, None
    step = plan_monitoring(workspace, model, mirror, calibration)
    evaluated = evaluate_rows(
        workspace, model, mirror, calibration, graph, due.rows, stopwatch, also=step.rows
    )
    monitored = Monitored(evaluated.also_logits, evaluated.also_degree)
    watch = update_monitor(workspace, model, mirror, step, monitored)
    notes = [evaluated.sentence, *_notes(read, evaluated, settings.conformal)]
    if due.evaluated_before:
        notes.append(
            f"{due.evaluated_before} nodes have another key than when they were evaluated, and got "
            "no second set"
        )
    notes += describe_corrections(workspace, model.version, model.classes)
    notes += [] if is_bound(model.manifest) else [NOT_BOUND]
    if settings.conformal.nonempty:
        result, note = _fill_empty_sets(evaluated.result)
        evaluated, notes = replace(evaluated, result=result), notes + note
    facts = _facts(workspace, model, read, evaluated.result, due)
    facts = replace(facts, notes=tuple(notes), watch=watch)
    decided = predictions(mirror, due.rows, evaluated, model.classes)
    stopwatch.lap("compute")
    rejected = [*mirror.rejected.values(), *mirror.odd_relationships]
    thresholds = _thresholds(facts)
    return due, Decision(facts, decided, rejected, terms_of(settings, terms), thresholds)


@dataclass(frozen=True, slots=True)
class EvaluatedRows:
    """Sets of some rows on the graph as it is now, and how they came about.

    `absent` counts calibration nodes that have left the graph; `also_logits` and `also_degree` are
    those of the rows that were asked for beside the evaluated ones.
    """

    result: Evaluation
    degree: NDArray[np.int64]
    absent: int
    sentence: str
    also_logits: NDArray[np.float32]
    also_degree: NDArray[np.int64]


def evaluate_rows(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    known: list[Member],
    graph: InferenceGraph,
    rows: NDArray[np.int64],
    stopwatch: Stopwatch,
    also: NDArray[np.int64] = NO_ROWS,
) -> EvaluatedRows:
    """Evaluate `rows`, calibrated with the `known` nodes on the graph as it is now.

    The network's outputs at the rows `also` come along.
    """
    calibration, classes, absent = _calibration(mirror, known)
    wanted = np.concatenate([calibration, rows, also])
    passed = inference.outputs_at(workspace.tables, model, mirror, workspace.mapping, graph, wanted)
    degree = neighbour_counts(graph, wanted)
    stopwatch.lap("forward")
    seed, n, m = model.manifest["seed"], len(calibration), len(calibration) + len(rows)
    result = evaluate(
        passed.logits,
        degree,
        Part(np.arange(n), uniforms_of(mirror, calibration, seed)),
        classes,
        Part(np.arange(n, m), uniforms_of(mirror, rows, seed)),
        promise_of(workspace.settings.conformal, model.manifest),
        model.naive_scores,
        _drift(mirror, calibration, workspace.settings.conformal),
    )
    return EvaluatedRows(
        result, degree[n:m], absent, passed.sentence, passed.logits[m:], degree[m:]
    )


def _drift(
    mirror: Mirror, rows: NDArray[np.int64], settings: ConformalSettings
) -> NDArray[np.float64] | None:
    """Weights of the calibration nodes by age at the watermark, where the configuration asks."""
    if settings.drift_half_life_days is None:
        return None
    ages = np.maximum((mirror.watermark_ns or 0) - mirror.created_ns[rows], 0)
    return drift_weights(ages / DAY_NS, settings.drift_half_life_days)


def promise_of(settings: ConformalSettings, manifest: Mapping[str, Any]) -> Promise:
    """Return the promise in force as `models` takes it."""
    terms = terms_in_force(settings, manifest)
    rule: CalibrationRule = "EdgeEx" if terms.rule == "EdgeEx" else "NodeEx"
    exact = settings.edge_test_weight == "exact"
    return Promise(settings.first_alpha, rule, terms.score, exact)


def terms_of(settings: Settings, terms: PromiseTerms) -> dict[str, Any]:
    """Return the settings that coverage is counted under, as the chain records their changes."""
    groups = {"groups": list(settings.audit.groups)}
    return {**settings.conformal.model_dump(mode="json"), **terms.as_manifest(), **groups}


def _thresholds(facts: RunFacts) -> list[Threshold]:
    """The one threshold of a run whose nodes are all judged alike."""
    n, worth = facts.n_calibration, facts.effective_calibration
    one = Threshold(facts.alpha, "", "", facts.alpha, facts.threshold, n, worth, facts.n_evaluated)
    return [one]


def _check_width(mirror: Mirror, model: SavedModel) -> None:
    if mirror.width != model.manifest["in_features"]:
        raise ModelError(
            found=f"nodes have {mirror.width} features, the model {model.version} was trained "
            f"with {model.manifest['in_features']}",
            needed="the same features",
            next_step="check [graph] features, or: ringfence train",
        )


def _calibration(
    mirror: Mirror, known: list[Member]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Rows and classes of the calibration nodes that are still in the graph; how many are not."""
    calibration = sorted(
        (member for member in known if member.role == "calibration"), key=lambda m: m.node_key
    )
    rows = mirror.find([member.node_key for member in calibration])
    here = rows >= 0
    if not here.any():
        raise ModelError(
            found="none of the model's calibration nodes is in the graph any more with its class",
            needed="at least one calibration node",
            next_step="ringfence train",
        )
    classes = np.array([member.class_index for member in calibration], np.int64)
    return rows[here], classes[here], int((~here).sum())


def _notes(read: SyncResult, evaluated: EvaluatedRows, settings: ConformalSettings) -> list[str]:
    notes = [read.note] if read.note else []
    result = evaluated.result
    if read.rebuilt:
        notes.append(f"read the whole graph: {read.rebuilt}")
    if evaluated.absent:
        notes.append(f"{evaluated.absent} calibration nodes have left the graph")
    if settings.drift_half_life_days is not None:
        notes.append(
            f"calibration nodes count half after {settings.drift_half_life_days:g} days "
            f"(worth {result.effective_calibration:.4g} of {result.n_calibration}): the "
            "guarantee loses at most the drift's total-variation bound"
        )
    if not math.isfinite(result.threshold):
        notes.append(guarantee(result.n_calibration, settings.first_alpha).sentence)
    return notes


def _facts(
    workspace: Workspace, model: SavedModel, read: SyncResult, result: Evaluation, due: DueNodes
) -> RunFacts:
    settings = workspace.settings
    alphas = settings.conformal.alphas
    terms = terms_in_force(settings.conformal, model.manifest)
    return RunFacts(
        started_ns=time.time_ns(),
        watermark_from_ns=read.from_ns,
        watermark_to_ns=read.mirror.watermark_ns,
        rule=terms.rule,
        score=terms.score,
        alpha=alphas[0],
        threshold=finite(result.threshold),
        threshold_node=finite(result.threshold_node),
        threshold_edge=finite(result.threshold_edge),
        threshold_naive=finite(result.threshold_naive),
        n_calibration=result.n_calibration,
        effective_calibration=result.effective_calibration,
        n_evaluated=len(due.rows),
        n_waiting=due.waiting,
        n_already_known=due.already_known,
        n_quarantined=len(read.mirror.rejected),
        n_nodes=read.mirror.node_count,
        n_relationships=read.mirror.edge_count,
        model=model.version,
        config=settings.digest(),
        software=__version__,
        notes=(),
        calibration_scores=score_quantiles(result),
        watch=None,
        options=options_of(settings.conformal, terms),
        alphas=alphas,
        level=alphas[0],
        lowest_level=min(alphas),
        n_thresholds=1,
        promise=terms.promise,
        calibration_set=terms.calibration_set,
        adapt=terms.adapt,
        levels={"used": list(alphas), "nonempty": settings.conformal.nonempty},
        weights=terms.weights,
    )


def _fill_empty_sets(result: Evaluation) -> tuple[Evaluation, list[str]]:
    """Put the likeliest class into empty sets; return the result and a note where there were."""
    empty = int((~result.sets.any(axis=1)).sum())
    sets = fill_empty(result.sets, result.scores)
    note = f"{empty} empty sets were given their likeliest class (nonempty = true)"
    return replace(result, sets=sets), [note] if empty else []


def predictions(
    mirror: Mirror, rows: NDArray[np.int64], evaluated: EvaluatedRows, classes: tuple[str, ...]
) -> list[Prediction]:
    """Return evaluated rows as the store takes them."""
    names = np.array(classes, object)
    columns = zip(
        mirror.keys.take(rows.tolist()),
        evaluated.result.sets,
        evaluated.result.p_values.tolist(),
        evaluated.result.scores.tolist(),
        evaluated.degree.tolist(),
        strict=True,
    )
    return [
        Prediction(key, tuple(names[inside]), tuple(p), tuple(s), degree, band="")
        for key, inside, p, s, degree in columns
    ]
