"""What a run decides: the sets of the due nodes, thresholds, levels, and the notes on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.keys import record_key
from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.read.reader import SyncResult
from ringfence.connector.store.calibration.run_basis import MonitorInput, RunBasis
from ringfence.connector.store.runs import Decision
from ringfence.connector.store.worklist.sampled_nodes import NO_SAMPLE, AuditSample
from ringfence.jobs.config.conformal import terms_of
from ringfence.jobs.inference import inference_graph
from ringfence.jobs.project.mapping_digest import NOT_BOUND, is_bound
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.node_seed import node_seed
from ringfence.jobs.project.promise import terms_in_force
from ringfence.jobs.project.promise_check import calibration_warnings
from ringfence.jobs.project.sealed_basis import on_record
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.calibration_set import describe_calibration_set
from ringfence.jobs.scoring.calibration.settled_notes import describe_late_classes, with_settled
from ringfence.jobs.scoring.corrections import describe_corrections
from ringfence.jobs.scoring.due import DueNodes, find_due, leave_out_evaluated, recorded_policy
from ringfence.jobs.scoring.evaluation_flags import mark_members
from ringfence.jobs.scoring.levels import describe_levels, with_levels
from ringfence.jobs.scoring.monitor import (
    Monitored,
    MonitorStep,
    plan_monitoring,
    update_monitor,
)
from ringfence.jobs.scoring.node_evaluation import (
    NodeEvaluation,
    evaluate_nodes,
    prediction_table,
)
from ringfence.jobs.scoring.node_lists import describe_overlap, listed_nodes
from ringfence.jobs.scoring.run_record import (
    describe_calibration,
    describe_read,
    further_sets,
    run_facts,
    thresholds,
)
from ringfence.jobs.scoring.shift import describe_shift
from ringfence.jobs.scoring.version_on_graph import (
    VersionOnGraph,
    calibrate_on_record,
    require_runnable,
)
from ringfence.jobs.telemetry.stopwatch import Stopwatch
from ringfence.models.hashing import SAMPLE, draw_keys
from ringfence.models.inference import InferenceGraph


def decide_due(
    workspace: Workspace,
    model: SavedModel,
    read: SyncResult,
    stopwatch: Stopwatch,
    changed_times: int = 0,
) -> tuple[DueNodes, Decision | None]:
    """Evaluate the due nodes on the graph as it is now; no decision if none is due.

    `changed_times` is noted: evaluated nodes whose creation time is not the sealed one.
    """
    mirror = read.mirror
    require_runnable(workspace, model, mirror)
    mark_members(workspace, mirror, model.version)
    graph = inference_graph(mirror, workspace.mapping)
    due = replace(_due_nodes(workspace, model, mirror, graph), changed_times=changed_times)
    if len(due.rows) == 0:
        stopwatch.lap("compute")
        return due, None
    version, step = _calibrate_on_record(workspace, model, mirror, graph)
    evaluation = evaluate_nodes(
        version,
        due.rows,
        extra_rows=step.rows,
        stopwatch=stopwatch,
        lists=terms_of(workspace.settings.lists),
    )
    monitored = Monitored(evaluation.extra_scores, evaluation.extra_degree)
    watch = update_monitor(version, step, monitored)
    decision = _decision(version, read, due, evaluation, watch)
    stopwatch.lap("compute")
    return due, decision


def _calibrate_on_record(
    workspace: Workspace, model: SavedModel, mirror: Mirror, graph: InferenceGraph
) -> tuple[VersionOnGraph, MonitorStep]:
    """Calibrate from one snapshot of SQL, in which all that is read is compared with its seal."""
    with on_record(workspace) as (held, basis):
        basis.require_active(model.version)
        version = calibrate_on_record(held, basis, model, mirror, graph=graph)
        step = plan_monitoring(version)
    return replace(version, workspace=workspace), step


def _due_nodes(
    workspace: Workspace, model: SavedModel, mirror: Mirror, graph: InferenceGraph
) -> DueNodes:
    """The nodes due by rule and policy, without those that got a set under another key."""
    settings = workspace.settings.conformal
    policy = recorded_policy(settings, model)
    rule = terms_in_force(settings, model.manifest).rule_kind
    seed = node_seed(workspace.settings, model.manifest)
    due = find_due(mirror, graph, rule, policy, seed)
    due = leave_out_evaluated(workspace, mirror, due)
    return replace(due, reused=len(_superseded(mirror, due.rows)))


def _superseded(mirror: Mirror, rows: NDArray[np.int64]) -> list[str]:
    """The record's keys of the nodes that had the keys of some rows before them."""
    if not mirror.incarnations:
        return []
    numbers = [mirror.incarnations.get(row, 0) for row in rows.tolist()]
    again = rows[np.array(numbers, np.int64) > 0]
    typed_keys = mirror.keys.take(again.tolist())
    return [
        record_key(typed_key, number - 1)
        for typed_key, number in zip(typed_keys, filter(None, numbers), strict=True)
    ]


def _decision(
    version: VersionOnGraph,
    read: SyncResult,
    due: DueNodes,
    evaluation: NodeEvaluation,
    watch: tuple[Mapping[str, Any], MonitorInput],
) -> Decision:
    """The evaluation as the store takes it."""
    mirror, result = version.mirror, evaluation.result
    predictions = prediction_table(version, due.rows, evaluation)
    facts = replace(
        run_facts(version, read, result, due),
        notes=tuple(_describe_run(version, read, due, evaluation)),
        watch=watch[0],
        shift=evaluation.shift,
        lists=[item.facts.as_json() for item in evaluation.lists] or None,
    )
    return Decision(
        facts=with_settled(with_levels(facts, version.levels), version.calibration, version.terms),
        predictions=predictions,
        rejected=[*mirror.rejected.values(), *mirror.odd_relationships],
        terms=_recorded_terms(version),
        thresholds=thresholds(result, version.model.classes),
        further_sets=further_sets(predictions, result, version.settings.alphas),
        joined=version.calibration.joining,
        superseded=_superseded(mirror, due.rows),
        sample=draw_sample(version, predictions.keys),
        basis=RunBasis(watch[1], version.workspace.settings.graph.label_delay_days),
        listed=listed_nodes(evaluation.lists, predictions.keys),
    )


def _recorded_terms(version: VersionOnGraph) -> dict[str, Any]:
    """The settings that coverage is counted under, as the chain records their changes."""
    audit = version.workspace.settings.audit
    counted: dict[str, Any] = {"groups": list(audit.groups), "sample_nodes": audit.sample_nodes}
    if lists := version.workspace.settings.lists:
        counted["lists"] = [settings.model_dump(mode="json", by_alias=True) for settings in lists]
    return {**version.settings.model_dump(mode="json"), **version.terms.as_manifest(), **counted}


def _describe_run(
    version: VersionOnGraph, read: SyncResult, due: DueNodes, evaluation: NodeEvaluation
) -> list[str]:
    """The notes of the run, in the order in which they are read."""
    model, terms = version.model, version.terms
    return [
        evaluation.sentence,
        *describe_read(read, evaluation.absent),
        *describe_calibration(evaluation.result, version.settings, terms),
        *evaluation.drift_notes,
        *evaluation.promise_notes,
        *describe_identities(due),
        *(warning for warning, _ in calibration_warnings(terms)),
        *describe_shift(evaluation.shift),
        *describe_calibration_set(version.calibration, terms),
        *describe_late_classes(version.calibration, version.terms),
        *([] if version.levels is None else describe_levels(version.levels)),
        *describe_corrections(version.workspace, model.version, model.classes),
        *([] if is_bound(model.manifest) else [NOT_BOUND]),
        *evaluation.fill_notes,
        *(item.facts.words for item in evaluation.lists),
        *describe_overlap(evaluation.lists),
    ]


def describe_identities(due: DueNodes) -> list[str]:
    """Return notes on nodes whose key or creation time is not the one on record."""
    notes = []
    if due.evaluated_before:
        notes.append(
            f"{due.evaluated_before} nodes have another key than when they were evaluated, and got "
            "no second set"
        )
    if due.reused:
        notes.append(
            f"{due.reused} keys were used again: evaluated nodes left, other nodes have their keys "
            "now and got sets of their own"
        )
    if due.changed_times:
        notes.append(
            f"{due.changed_times} nodes have another creation time than when they were evaluated, "
            "and got no second set"
        )
    return notes


def draw_sample(version: VersionOnGraph, keys: Sequence[str]) -> AuditSample:
    """Draw the audit sample of a run among the keys of the nodes that it evaluates.

    The hash has the version's seed key and a purpose of its own: a node's place in the sample says
    nothing about its u, nobody without the key can tell who will be drawn, and an auditor who is
    given it can check that nobody was chosen.
    """
    asked = version.workspace.settings.audit.sample_nodes
    if asked == 0:
        return NO_SAMPLE
    return AuditSample(asked, tuple(draw_keys(keys, version.node_seed, SAMPLE, asked)))
