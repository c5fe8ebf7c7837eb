"""From the mirror and the model to a decision: who is due, their sets, and what goes on record."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ringfence import __version__
from ringfence.connector import runs
from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.mirror import UNKNOWN, Mirror
from ringfence.connector.models import Member, members
from ringfence.connector.refresh import Refreshed
from ringfence.connector.runs import Decision, Prediction
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs import forwarding
from ringfence.jobs.marking import mark_members
from ringfence.jobs.model_files import SavedModel
from ringfence.jobs.observing import filled, observe, plan_watch
from ringfence.jobs.settings import ConformalSettings
from ringfence.jobs.stopwatch import Stopwatch
from ringfence.jobs.tensors import uniforms_of
from ringfence.jobs.workspace import Workspace
from ringfence.models.evaluation_times import EvaluationPolicy, PolicyChanged, due, require_policy
from ringfence.models.guarantee import guarantee
from ringfence.models.incremental import Incidence, neighbour_counts
from ringfence.models.snapshot import Evaluation, Part, Promise, evaluate
from ringfence.models.weights import drift_weights

NOBODY = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Due:
    """Who is evaluated now, who waits (for its time or a neighbour), who needs no prediction."""

    rows: NDArray[np.int64]
    waiting: int
    already_known: int


def consider(
    workspace: Workspace, model: SavedModel, read: Refreshed, watch: Stopwatch
) -> tuple[Due, Decision | None]:
    """Evaluate the due nodes on the graph as it is now; no decision where nobody is due."""
    mirror, settings = read.mirror, workspace.settings
    _check_width(mirror, model)
    mark_members(workspace, mirror, model.version)
    known = members(workspace.store, workspace.project, model.version, "calibration")
    graph = forwarding.incidence(mirror, workspace.mapping)
    policy = recorded_policy(settings.conformal, model)
    now = _due(mirror, graph, settings.conformal, policy)
    if len(now.rows) == 0:
        watch.lap("compute")
        return now, None
    watching = plan_watch(workspace, model, mirror, known)
    seen = look(workspace, model, mirror, known, graph, now.rows, watch, also=watching.rows)
    facts = _facts(workspace, model, read, seen.result, now)
    facts |= observe(
        workspace, model, mirror, watching, seen.also_logits, seen.also_degree, seen.result
    )
    notes = [seen.words, *_notes(read, seen, settings.conformal)]
    if settings.conformal.nonempty:
        result, note = filled(seen.result)
        seen, notes = replace(seen, result=result), notes + note
    facts["notes"] = json.dumps(notes)
    decided = predictions(mirror, now.rows, seen, model.classes)
    watch.lap("compute")
    return now, Decision(facts, decided, list(mirror.rejected.values()))


@dataclass(frozen=True, slots=True)
class Look:
    """Sets of some rows on the graph as it is now, and how they came about."""

    result: Evaluation
    degree: NDArray[np.int64]
    absent: int
    words: str
    also_logits: torch.Tensor
    also_degree: NDArray[np.int64]


def look(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    known: list[Member],
    graph: Incidence,
    rows: NDArray[np.int64],
    watch: Stopwatch,
    also: NDArray[np.int64] = NOBODY,
) -> Look:
    """Evaluate `rows`, calibrated on the graph as it is now; `absent` calibration nodes left it.

    The network's outputs at the rows `also` come along.
    """
    calibration, classes, absent = _calibration(mirror, known)
    wanted = np.concatenate([calibration, rows, also])
    passed = forwarding.outputs_at(
        workspace.tables, model, mirror, workspace.mapping, graph, wanted
    )
    degree = neighbour_counts(graph, wanted)
    watch.lap("forward")
    seed, n, m = model.manifest["seed"], len(calibration), len(calibration) + len(rows)
    result = evaluate(
        passed.logits,
        torch.from_numpy(degree),
        Part(torch.arange(n), uniforms_of(mirror, calibration, seed)),
        torch.from_numpy(classes),
        Part(torch.arange(n, m), uniforms_of(mirror, rows, seed)),
        promise_of(workspace.settings.conformal),
        model.naive_scores,
        _drift(mirror, calibration, workspace.settings.conformal),
    )
    return Look(result, degree[n:m], absent, passed.words, passed.logits[m:], degree[m:])


def _drift(
    mirror: Mirror, rows: NDArray[np.int64], settings: ConformalSettings
) -> torch.Tensor | None:
    """Weights of the calibration nodes by age at the watermark, where the configuration asks."""
    if settings.drift_half_life_days is None:
        return None
    ages = np.maximum((mirror.watermark_ns or 0) - mirror.created_ns[rows], 0)
    return drift_weights(ages / (86_400 * NANOSECONDS), settings.drift_half_life_days)


def policy_of(settings: ConformalSettings) -> EvaluationPolicy:
    """Return when nodes are evaluated, as `models` takes it."""
    if settings.evaluate == "delay":
        return EvaluationPolicy.after(int(settings.delay_hours * 3600 * NANOSECONDS))
    if settings.evaluate == "date" and settings.date is not None:
        return EvaluationPolicy.at(int(settings.date.timestamp()) * NANOSECONDS)
    return EvaluationPolicy.on_arrival()


def recorded_policy(settings: ConformalSettings, model: SavedModel) -> EvaluationPolicy:
    """Return the policy that was recorded when the model was trained; another one is refused."""
    policy = policy_of(settings)
    recorded = model.manifest["evaluation"]
    try:
        require_policy(policy, recorded["digest"])
    except PolicyChanged:
        raise ConfigError(
            found=f"[conformal] says: {policy.words()}; the model was trained under: "
            f"{recorded['words']}",
            needed="the time of evaluation that was fixed before any set was seen",
            next_step="restore [conformal] evaluate, or: ringfence train",
        ) from None
    return policy


def promise_of(settings: ConformalSettings) -> Promise:
    """Return the promise as `models` takes it."""
    return Promise(
        settings.alpha, settings.rule, settings.score, settings.edge_test_weight == "exact"
    )


def _check_width(mirror: Mirror, model: SavedModel) -> None:
    if mirror.width != model.manifest["in_features"]:
        raise ModelError(
            found=f"nodes have {mirror.width} features, the model {model.version} was trained "
            f"with {model.manifest['in_features']}",
            needed="the same features",
            next_step="check [graph] features, or: ringfence train",
        )


def _due(
    mirror: Mirror,
    graph: Incidence,
    settings: ConformalSettings,
    policy: EvaluationPolicy,
) -> Due:
    open_ = ~mirror.evaluated
    already_known = open_ & (mirror.classes != UNKNOWN)
    open_ &= mirror.classes == UNKNOWN
    candidates = np.flatnonzero(open_)
    alone = neighbour_counts(graph, candidates) == 0
    waits = alone if settings.rule == "EdgeEx" else np.zeros_like(alone)
    if policy.kind != "arrival":  # the graph is complete up to the watermark: that is "now"
        times = due(policy, mirror.created_ns[candidates], mirror.watermark_ns or 0)
        waits[times.waiting] = True
    return Due(candidates[~waits], int(waits.sum()), int(already_known.sum()))


def _calibration(
    mirror: Mirror, known: list[Member]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Rows and classes of the calibration nodes that are still in the graph; how many are not."""
    all_ = sorted((one for one in known if one.role == "calibration"), key=lambda m: m.node_key)
    rows = mirror.find([one.node_key for one in all_])
    here = rows >= 0
    if not here.any():
        raise ModelError(
            found="none of the model's calibration nodes is in the graph any more",
            needed="at least one",
            next_step="ringfence train",
        )
    classes = np.array([one.class_index for one in all_], np.int64)
    return rows[here], classes[here], int((~here).sum())


def _notes(read: Refreshed, seen: Look, settings: ConformalSettings) -> list[str]:
    notes = [read.note] if read.note else []
    if read.rebuilt:
        notes.append(f"read the whole graph: {read.rebuilt}")
    if seen.absent:
        notes.append(f"{seen.absent} calibration nodes have left the graph")
    if settings.drift_half_life_days is not None:
        notes.append(
            f"calibration nodes count half after {settings.drift_half_life_days:g} days "
            f"(worth {seen.result.effective_calibration:.4g} of {seen.result.n_calibration}): the "
            "guarantee loses at most the drift's total-variation bound"
        )
    if not math.isfinite(seen.result.threshold):
        notes.append(guarantee(seen.result.n_calibration, settings.alpha).words)
    return notes


def _facts(
    workspace: Workspace, model: SavedModel, read: Refreshed, result: Evaluation, due: Due
) -> dict[str, Any]:
    settings = workspace.settings
    return {
        "started_ns": time.time_ns(),
        "watermark_from_ns": read.from_ns,
        "watermark_to_ns": read.mirror.watermark_ns,
        "rule": settings.conformal.rule,
        "score": settings.conformal.score,
        "alpha": settings.conformal.alpha,
        "threshold": runs.finite(result.threshold),
        "threshold_node": runs.finite(result.threshold_node),
        "threshold_edge": runs.finite(result.threshold_edge),
        "threshold_naive": runs.finite(result.threshold_naive),
        "n_calibration": result.n_calibration,
        "effective_calibration": result.effective_calibration,
        "n_evaluated": len(due.rows),
        "n_waiting": due.waiting,
        "n_already_known": due.already_known,
        "n_quarantined": len(read.mirror.rejected),
        "n_nodes": read.mirror.size,
        "n_relationships": read.mirror.edge_count,
        "model": model.version,
        "config": settings.digest(),
        "software": __version__,
        "timings": "{}",
    }


def predictions(
    mirror: Mirror, rows: NDArray[np.int64], seen: Look, classes: tuple[str, ...]
) -> list[Prediction]:
    """Return evaluated rows as the store takes them."""
    names = np.array(classes, object)
    columns = zip(
        mirror.keys.take(rows.tolist()),
        seen.result.sets.numpy(),
        seen.result.p_values.tolist(),
        seen.result.scores.tolist(),
        seen.degree.tolist(),
        strict=True,
    )
    return [
        Prediction(key, tuple(names[inside]), tuple(p), tuple(s), degree)
        for key, inside, p, s, degree in columns
    ]
