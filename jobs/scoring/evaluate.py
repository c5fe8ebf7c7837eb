"""From the mirror and the model to a decision: sets of the due nodes, and the run's facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import ModelError
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.sync import SyncResult
from ringfence.connector.records import Member
from ringfence.connector.store.corrections import calibration_members
from ringfence.connector.store.runs import Decision
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.config.settings import ConformalSettings, Settings
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.model_inputs import NOT_BOUND, is_bound
from ringfence.jobs.project.promise import PromiseTerms, terms_in_force
from ringfence.jobs.project.promise_check import calibration_warnings, require_promise
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring import inference
from ringfence.jobs.scoring.calibration.living_set import describe_living_set, living_set
from ringfence.jobs.scoring.corrections import describe_corrections
from ringfence.jobs.scoring.decided import (
    describe_calibration,
    describe_read,
    fill_empty_sets,
    further_sets,
    predictions,
    run_facts,
    thresholds,
)
from ringfence.jobs.scoring.due import DueNodes, find_due, leave_out_evaluated, recorded_policy
from ringfence.jobs.scoring.evaluated import mark_members
from ringfence.jobs.scoring.levels import (
    RunLevels,
    describe_levels,
    levels_of_run,
    with_levels,
)
from ringfence.jobs.scoring.monitor import Monitored, plan_monitoring, update_monitor
from ringfence.jobs.scoring.promised_strata import NodesToCompare, choose_strata
from ringfence.jobs.scoring.scored_rows import ScoreRows, score_rows, threads_for
from ringfence.jobs.scoring.shift import (
    columns_to_compare,
    compare_with_calibration,
    describe_shift,
)
from ringfence.jobs.scoring.stopwatch import Stopwatch
from ringfence.models.conformal.bands import EXPECTED_IN_LIVING_SETS, EXPECTED_NODES
from ringfence.models.conformal.evaluate import (
    CalibrationRule,
    Evaluation,
    NodeDegrees,
    NodeScores,
    Promise,
    degree_counts,
    evaluate,
    rule_strata,
)
from ringfence.models.conformal.weights import drift_weights
from ringfence.models.inference import InferenceGraph, neighbour_counts
from ringfence.models.promise.class_alphas import class_alphas
from ringfence.models.schema import CLASSIFIED

NO_ROWS = np.empty(0, np.int64)
DAY_NS = 86_400 * NANOSECONDS


def decide_due(
    workspace: Workspace, model: SavedModel, read: SyncResult, stopwatch: Stopwatch
) -> tuple[DueNodes, Decision | None]:
    """Evaluate the due nodes on the graph as it is now; no decision where nobody is due."""
    mirror, settings = read.mirror, workspace.settings
    require_width(mirror, model)
    mark_members(workspace, mirror, model.version)
    calibration = calibration_members(
        workspace.store, workspace.project, model.version, model.classes
    )
    graph = inference.inference_graph(mirror, workspace.mapping)
    policy = recorded_policy(settings.conformal, model)
    terms = terms_in_force(settings.conformal, model.manifest)
    require_promise(settings.conformal, terms, model.manifest, workspace.mapping.class_property)
    due = find_due(mirror, graph, terms.rule, policy)
    due = leave_out_evaluated(workspace, mirror, due)
    if len(due.rows) == 0:
        stopwatch.lap("compute")
        return due, None
    living = living_set(workspace, model, terms, calibration)
    levels = levels_of_run(workspace, model, terms, living)
    step = plan_monitoring(workspace, model, mirror, calibration)
    evaluated = evaluate_rows(
        workspace, model, mirror, list(living.members), graph, due.rows, stopwatch,
        also=step.rows, levels=levels,
    )  # fmt: skip
    monitored = Monitored(evaluated.also_scores, evaluated.also_degree)
    watch = update_monitor(workspace, model, mirror, step, monitored)
    notes = [evaluated.sentence, *describe_read(read, evaluated.absent)]
    notes += [
        *describe_calibration(evaluated.result, settings.conformal, terms),
        *evaluated.promise_notes,
    ]
    if due.evaluated_before:
        notes.append(
            f"{due.evaluated_before} nodes have another key than when they were evaluated, and got "
            "no second set"
        )
    notes += [found for found, _ in calibration_warnings(terms)]
    notes += describe_shift(evaluated.shift)
    notes += describe_living_set(living, terms)
    notes += [] if levels is None else describe_levels(levels)
    notes += describe_corrections(workspace, model.version, model.classes)
    notes += [] if is_bound(model.manifest) else [NOT_BOUND]
    if settings.conformal.nonempty:
        result, note = fill_empty_sets(evaluated.result)
        evaluated, notes = replace(evaluated, result=result), notes + note
    facts = run_facts(settings, terms, model, read, evaluated.result, due)
    decided = predictions(mirror, due.rows, evaluated.result, evaluated.degree, model.classes)
    decision = Decision(
        facts=with_levels(
            replace(facts, notes=tuple(notes), watch=watch, shift=evaluated.shift), levels
        ),
        predictions=decided,
        rejected=[*mirror.rejected.values(), *mirror.odd_relationships],
        terms=terms_of(settings, terms),
        thresholds=thresholds(evaluated.result, model.classes),
        further_sets=further_sets(decided, evaluated.result, settings.conformal.alphas),
        joined=living.joining,
    )
    stopwatch.lap("compute")
    return due, decision


@dataclass(frozen=True, slots=True)
class EvaluatedRows:
    """Sets of some rows on the graph as it is now, and how they came about.

    `absent` counts calibration nodes that have left the graph; `also_scores` and `also_degree` are
    those of the rows that were asked for beside the evaluated ones; `promise_notes` say what a
    promise per class or group could not be kept to for want of calibration nodes.
    """

    result: Evaluation
    degree: NDArray[np.int64]
    absent: int
    sentence: str
    also_scores: NDArray[np.float64]
    also_degree: NDArray[np.int64]
    shift: Mapping[str, Any]
    promise_notes: tuple[str, ...] = ()


def evaluate_rows(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    known: list[Member],
    graph: InferenceGraph,
    rows: NDArray[np.int64],
    stopwatch: Stopwatch,
    also: NDArray[np.int64] = NO_ROWS,
    levels: RunLevels | None = None,
    score: ScoreRows = score_rows,
) -> EvaluatedRows:
    """Evaluate `rows`, calibrated with the `known` nodes on the graph as it is now.

    The scores of the rows `also` come along; `levels` are those in force, alpha itself without.
    `score` may be another way to score rows than the run's.
    """
    settings = workspace.settings.conformal
    terms = terms_in_force(settings, model.manifest)
    calibration, classes, absent = _calibration(mirror, known)
    wanted = np.concatenate([calibration, rows, also])
    scored = score(workspace, model, mirror, graph, wanted, terms)
    stopwatch.lap("forward", scored.seconds)
    degree, n, m = neighbour_counts(graph, wanted), len(calibration), len(calibration) + len(rows)
    degrees = NodeDegrees(degree[:n], degree[n:m], _degree_counts(mirror, graph, terms))
    promise, drift = promise_of(settings, terms, model), _drift(mirror, calibration, settings)
    promise = promise if levels is None else replace(promise, levels=levels.used)
    compared = NodesToCompare(mirror, calibration, classes, rows, degrees, drift)
    chosen, notes = choose_strata(workspace, model, terms, promise, compared)
    strata = rule_strata(promise, degrees, drift) if chosen is None else chosen
    result = evaluate(
        NodeScores(
            scored.scores[np.arange(n), classes], scored.scores[n:m], model.naive_of(terms.score)
        ),
        degrees,
        promise,
        drift,
        strata,
        threads_for(scored.scores.size),
    )
    shift = compare_with_calibration(
        {"top probability": scored.top[:m], "entropy": scored.entropy[:m]},
        degrees,
        strata if terms.promise != "class" else [],
        seed=model.manifest["seed"] + len(rows),
        weighted=promise.shift,
        columns=columns_to_compare(workspace.mapping, model, mirror, wanted[:m]),
    )
    also_scores, also_degree = scored.scores[m:], degree[m:]
    return EvaluatedRows(
        result, degree[n:m], absent, scored.sentence, also_scores, also_degree, shift, notes
    )


def _degree_counts(mirror: Mirror, graph: InferenceGraph, terms: PromiseTerms) -> NDArray[np.int64]:
    """Nodes of the whole graph by degree; nothing is counted for a rule that does not ask."""
    if terms.rule != "auto":
        return NO_ROWS
    there = mirror.present
    if mirror.typed is not None:  # context has degrees of its own, and no sets
        there = there & (mirror.typed.labels == CLASSIFIED)
    return degree_counts(neighbour_counts(graph, np.flatnonzero(there)))


def _drift(
    mirror: Mirror, rows: NDArray[np.int64], settings: ConformalSettings
) -> NDArray[np.float64] | None:
    """Weights of the calibration nodes by age at the watermark, where the configuration asks."""
    if settings.drift_half_life_days is None:
        return None
    ages = np.maximum((mirror.watermark_ns or 0) - mirror.created_ns[rows], 0)
    return drift_weights(ages / DAY_NS, settings.drift_half_life_days)


def promise_of(settings: ConformalSettings, terms: PromiseTerms, model: SavedModel) -> Promise:
    """Return the promise in force as `models` takes it, with the alphas of the classes."""
    rule: CalibrationRule = "auto"
    if terms.rule in ("NodeEx", "EdgeEx"):
        rule = "NodeEx" if terms.rule == "NodeEx" else "EdgeEx"
    exact = settings.edge_test_weight == "exact"
    levels = [class_alphas(model.classes, alpha, settings.classes) for alpha in settings.alphas]
    living = terms.calibration_set != "frozen"
    return Promise(
        settings.alphas,
        rule,
        np.stack(levels),
        exact_test_weight=exact,
        band_nodes=EXPECTED_IN_LIVING_SETS if living else EXPECTED_NODES,
        shift=terms.weights == "shift",
    )


def terms_of(settings: Settings, terms: PromiseTerms) -> dict[str, Any]:
    """Return the settings that coverage is counted under, as the chain records their changes."""
    groups = {"groups": list(settings.audit.groups)}
    return {**settings.conformal.model_dump(mode="json"), **terms.as_manifest(), **groups}


def require_width(mirror: Mirror, model: SavedModel) -> None:
    """Refuse a model that was trained with another number of features than nodes have."""
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
