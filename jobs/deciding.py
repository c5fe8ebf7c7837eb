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

from ringfence import __version__
from ringfence.connector import runs
from ringfence.connector.errors import ModelError
from ringfence.connector.mirror import UNKNOWN, Mirror
from ringfence.connector.models import Member, members
from ringfence.connector.refresh import Refreshed
from ringfence.connector.runs import Decision, Prediction
from ringfence.jobs import forwarding
from ringfence.jobs.config import ConformalSettings
from ringfence.jobs.model_files import SavedModel
from ringfence.jobs.stopwatch import Stopwatch
from ringfence.jobs.tensors import uniforms_of
from ringfence.jobs.workspace import Workspace
from ringfence.models.guarantee import guarantee
from ringfence.models.incremental import Incidence, neighbour_counts
from ringfence.models.snapshot import Evaluation, Part, Promise, evaluate


@dataclass(frozen=True, slots=True)
class Due:
    """Who is evaluated now, who waits for a first neighbour, who needs no prediction."""

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
    graph = forwarding.incidence(mirror, workspace.mapping)
    due = _due(mirror, known, graph, settings.conformal)
    if len(due.rows) == 0:
        watch.lap("compute")
        return due, None
    rows, classes, absent = _calibration(mirror, known)
    wanted = np.concatenate([rows, due.rows])
    passed = forwarding.outputs_at(
        workspace.tables, model, mirror, workspace.mapping, graph, wanted
    )
    degree = neighbour_counts(graph, wanted)
    watch.lap("forward")
    seed, n = model.manifest["seed"], len(rows)
    result = evaluate(
        passed.logits,
        torch.from_numpy(degree),
        Part(torch.arange(n), uniforms_of(mirror, rows, seed)),
        torch.from_numpy(classes),
        Part(torch.arange(n, len(wanted)), uniforms_of(mirror, due.rows, seed)),
        promise_of(settings.conformal),
        model.naive_scores,
    )
    facts = _facts(workspace, model, read, result, due)
    facts["notes"] = json.dumps(
        [passed.words, *_notes(read, result, settings.conformal.alpha, absent)]
    )
    predictions = _predictions(mirror, due, result, model.classes, degree[n:])
    watch.lap("compute")
    return due, Decision(facts, predictions, list(mirror.rejected.values()))


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


def _due(mirror: Mirror, known: list[Member], graph: Incidence, settings: ConformalSettings) -> Due:
    open_ = ~mirror.evaluated
    rows = mirror.find([one.node_key for one in known])
    open_[rows[rows >= 0]] = False
    already_known = open_ & (mirror.classes != UNKNOWN)
    open_ &= mirror.classes == UNKNOWN
    candidates = np.flatnonzero(open_)
    alone = neighbour_counts(graph, candidates) == 0
    waits = alone if settings.rule == "EdgeEx" else np.zeros_like(alone)
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
        "n_relationships": read.mirror.edge_count,
        "model": model.version,
        "config": settings.digest(),
        "software": __version__,
        "timings": "{}",
    }


def _predictions(
    mirror: Mirror,
    due: Due,
    result: Evaluation,
    classes: tuple[str, ...],
    degree: NDArray[np.int64],
) -> list[Prediction]:
    names = np.array(classes, object)
    columns = zip(
        due.rows.tolist(),
        result.sets.numpy(),
        result.p_values.tolist(),
        result.scores.tolist(),
        degree.tolist(),
        strict=True,
    )
    return [
        Prediction(mirror.keys[row], tuple(names[inside]), tuple(p), tuple(s), neighbours)
        for row, inside, p, s, neighbours in columns
    ]
