"""From the mirror and the model to a decision: who is due, their sets, and what goes on record."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ringfence import __version__
from ringfence.connector import runs
from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.mirror import UNKNOWN, Mirror
from ringfence.connector.models import Member, members
from ringfence.connector.refresh import Refreshed
from ringfence.connector.runs import Decision, Prediction
from ringfence.connector.times import NANOSECONDS
from ringfence.jobs.config import ConformalSettings
from ringfence.jobs.model_files import SavedModel
from ringfence.jobs.stopwatch import Stopwatch
from ringfence.jobs.tensors import edge_index, uniforms_of
from ringfence.jobs.threads import threads_for
from ringfence.jobs.workspace import Workspace
from ringfence.models.evaluation_times import EvaluationPolicy
from ringfence.models.guarantee import guarantee
from ringfence.models.snapshot import Evaluation, Part, Promise, degrees, evaluate


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
    known = members(workspace.store, workspace.project, model.version)
    edges = edge_index(mirror, workspace.mapping)
    degree = degrees(edges, mirror.size)
    policy = recorded_policy(settings.conformal, model)
    due = _due(mirror, known, degree.numpy(), settings.conformal, policy)
    if len(due.rows) == 0:
        watch.lap("compute")
        return due, None
    result, absent = look(workspace, model, mirror, known, edges, degree, due.rows, watch)
    facts = _facts(workspace, model, read, result, due)
    facts["notes"] = json.dumps(_notes(read, result, settings.conformal.alpha, absent))
    decided = predictions(mirror, due, result, model.classes, degree.numpy())
    watch.lap("compute")
    return due, Decision(facts, decided, list(mirror.rejected.values()))


def look(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    known: list[Member],
    edges: Tensor,
    degree: Tensor,
    rows: NDArray[np.int64],
    watch: Stopwatch,
) -> tuple[Evaluation, int]:
    """Evaluate `rows` on the graph as it is now; also how many calibration nodes have left it."""
    settings = workspace.settings
    calibration, classes, absent = _calibration(mirror, known)
    with torch.inference_mode(), threads_for(edges.size(1), settings.model.hidden):
        logits = model.network(model.scaling(mirror.features), edges)
    watch.lap("forward")
    seed = model.manifest["seed"]
    result = evaluate(
        logits,
        degree,
        Part(torch.from_numpy(calibration), uniforms_of(mirror, calibration, seed)),
        torch.from_numpy(classes),
        Part(torch.from_numpy(rows), uniforms_of(mirror, rows, seed)),
        promise_of(settings.conformal),
        model.naive_scores,
    )
    return result, absent


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
    if policy.digest() != recorded["digest"]:
        raise ConfigError(
            found=f"[conformal] says: {policy.words()}; the model was trained under: "
            f"{recorded['words']}",
            needed="the time of evaluation that was fixed before any set was seen",
            next_step="restore [conformal] evaluate, or: ringfence train",
        )
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
    known: list[Member],
    degree: NDArray[np.int64],
    settings: ConformalSettings,
    policy: EvaluationPolicy,
) -> Due:
    open_ = ~mirror.evaluated
    open_[[mirror.rows[one.node_key] for one in known if one.node_key in mirror.rows]] = False
    already_known = open_ & (mirror.classes != UNKNOWN)
    open_ &= mirror.classes == UNKNOWN
    waiting = open_ & (degree == 0) if settings.rule == "EdgeEx" else np.zeros_like(open_)
    if policy.kind != "arrival":  # the graph is complete up to the watermark: that is "now"
        waiting |= open_ & (policy.due_at(mirror.created_ns) > (mirror.watermark_ns or 0))
    return Due(np.flatnonzero(open_ & ~waiting), int(waiting.sum()), int(already_known.sum()))


def _calibration(
    mirror: Mirror, known: list[Member]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Rows and classes of the calibration nodes that are still in the graph; how many are not."""
    all_ = sorted((one for one in known if one.role == "calibration"), key=lambda m: m.node_key)
    here = [one for one in all_ if one.node_key in mirror.rows]
    if not here:
        raise ModelError(
            found="none of the model's calibration nodes is in the graph any more",
            needed="at least one",
            next_step="ringfence train",
        )
    rows = np.array([mirror.rows[one.node_key] for one in here], np.int64)
    classes = np.array([one.class_index for one in here], np.int64)
    return rows, classes, len(all_) - len(here)


def _notes(read: Refreshed, result: Evaluation, alpha: float, absent: int) -> list[str]:
    notes = [read.note] if read.note else []
    if read.rebuilt:
        notes.append(f"read the whole graph: {read.rebuilt}")
    if absent:
        notes.append(f"{absent} calibration nodes have left the graph")
    if not math.isfinite(result.threshold):
        notes.append(guarantee(result.n_calibration, alpha).words)
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
        "n_relationships": int(read.mirror.edges.shape[1]),
        "model": model.version,
        "config": settings.digest(),
        "software": __version__,
        "timings": "{}",
    }


def predictions(
    mirror: Mirror,
    due: Due,
    result: Evaluation,
    classes: tuple[str, ...],
    degree: NDArray[np.int64],
) -> list[Prediction]:
    """Return evaluated rows as the store takes them."""
    names = np.array(classes, object)
    columns = zip(
        due.rows.tolist(),
        result.sets.numpy(),
        result.p_values.tolist(),
        result.scores.tolist(),
        strict=True,
    )
    return [
        Prediction(mirror.keys[row], tuple(names[inside]), tuple(p), tuple(s), int(degree[row]))
        for row, inside, p, s in columns
    ]
