"""What a run notes for the audit while the network's outputs on this graph are at hand.

Scores move as the graph grows, so two things can be computed at no other time: where the
calibration scores lie today, and how nodes of newly known class rank among nodes of known class on
the same graph, which is what the watch over exchangeability bets on (docs/watching.md).
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sqlalchemy import select
from torch import Tensor

from ringfence.connector.mirror import Mirror
from ringfence.connector.models import members
from ringfence.connector.store import dumps
from ringfence.connector.tables import prediction, run
from ringfence.jobs.model_files import SavedModel
from ringfence.jobs.tensors import uniforms_of
from ringfence.jobs.workspace import Workspace
from ringfence.models import keyed
from ringfence.models.conformal import fill_empty
from ringfence.models.smoothed import degree_strata, reference_sample, smoothed_p_values
from ringfence.models.snapshot import Evaluation, Part, calibration_scores
from ringfence.models.watch import Watch

QUANTILES = 201
REFERENCE = 2_000
FEW = 300  # labels; below, compiling costs more than it saves
WATCH, ORDER = "watch", "watch order"


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """Evaluated nodes of known class: keys, class numbers (-1: never seen), when noticed."""

    keys: list[str]
    classes: NDArray[np.int64]
    noticed_ns: NDArray[np.int64]


def observe(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    logits: Tensor,
    degree: Tensor,
    result: Evaluation,
) -> dict[str, Any]:
    """Return the columns `calibration_scores` and `watch` of the run's row."""
    grid = np.linspace(0, 1, QUANTILES)
    quantiles = np.quantile(result.calibration_scores.numpy(), grid)
    watched = _watch(workspace, model, mirror, logits, degree)
    return {
        "calibration_scores": dumps([round(float(q), 6) for q in quantiles]),
        "watch": dumps(watched),
    }


def filled(result: Evaluation) -> tuple[Evaluation, list[str]]:
    """Put the likeliest class into empty sets; return the result and a note where there were."""
    empty = int((~result.sets.any(dim=1)).sum())
    sets = fill_empty(result.sets, result.scores)
    note = f"{empty} empty sets were given their likeliest class (nonempty = true)"
    return dataclasses.replace(result, sets=sets), [note] if empty else []


def _watch(
    workspace: Workspace, model: SavedModel, mirror: Mirror, logits: Tensor, degree: Tensor
) -> dict[str, Any]:
    """One step of the watch: newly known nodes against all that were known before."""
    before, mark = _last(workspace, model.version)
    known = _known(workspace, model, mirror)
    fresh = known.noticed_ns > mark
    if not fresh.any():
        return {"state": before.as_dict(), "mark_ns": mark, "new": 0}
    calibration = [
        one
        for one in members(workspace.store, workspace.project, model.version)
        if one.role == "calibration" and one.node_key in mirror.rows
    ]
    keys = [one.node_key for one in calibration]
    keys += [key for key, new in zip(known.keys, fresh, strict=True) if not new]
    classes = np.array([one.class_index for one in calibration] + known.classes[~fresh].tolist())
    part = reference_sample(len(keys), REFERENCE, seed=before.labels)
    reference = _Scored.of([keys[i] for i in part], classes[part], mirror, logits, model, workspace)
    ours = _in_order(known, fresh, model.manifest["seed"])
    new = _Scored.of(*ours, mirror, logits, model, workspace)
    u = np.maximum(keyed.uniforms(ours[0], model.manifest["seed"], WATCH), 2.0**-53)
    strata = {}
    if workspace.settings.conformal.rule == "EdgeEx":
        by_degree = degree.numpy()
        strata = {
            "reference_strata": degree_strata(by_degree[reference.rows]),
            "strata": degree_strata(by_degree[new.rows]),
        }
    p = smoothed_p_values(reference.scores, new.scores, u, **strata)
    state = _after(before, p)
    top = int(known.noticed_ns.max())
    return {"state": state.as_dict(), "mark_ns": top, "new": len(p), "mean_p": float(p.mean())}


def _after(watch: Watch, p: NDArray[np.float64]) -> Watch:
    if len(p) > FEW:
        return watch.after(p)
    jumper, mixture = watch.jumper, watch.mixture
    for one in p.tolist():
        jumper, mixture = jumper.update(one), mixture.update(one)
    return Watch(jumper, mixture)


def _last(workspace: Workspace, version: str) -> tuple[Watch, int]:
    """The watch as the model's last run left it, and up to when classes were noticed then."""
    query = (
        select(run.c.watch)
        .where(
            run.c.project == workspace.project,
            run.c.model == version,
            run.c.watch.is_not(None),
        )
        .order_by(run.c.seq.desc())
        .limit(1)
    )
    with workspace.store.reading() as connection:
        stored = connection.execute(query).scalar()
    if stored is None:
        return Watch.start(), 0
    body = json.loads(stored)
    return Watch.from_dict(body["state"]), int(body["mark_ns"])


def _known(workspace: Workspace, model: SavedModel, mirror: Mirror) -> Known:
    query = (
        select(prediction.c.node_key, prediction.c.label, prediction.c.labelled_ns)
        .join(run, (run.c.project == prediction.c.project) & (run.c.seq == prediction.c.seq))
        .where(
            prediction.c.project == workspace.project,
            prediction.c.labelled_ns.is_not(None),
            run.c.model == model.version,
        )
        .order_by(prediction.c.node_key)
    )
    with workspace.store.reading() as connection:
        rows = [row for row in connection.execute(query) if row.node_key in mirror.rows]
    index = {name: i for i, name in enumerate(model.classes)}
    return Known(
        [row.node_key for row in rows],
        np.array([index.get(row.label, -1) for row in rows], np.int64),
        np.array([row.labelled_ns for row in rows], np.int64),
    )


def _in_order(
    known: Known, fresh: NDArray[np.bool_], seed: int
) -> tuple[list[str], NDArray[np.int64]]:
    """The newly known in an order that knows nothing of their scores."""
    chosen = np.flatnonzero(fresh)
    draw = keyed.uniforms([known.keys[i] for i in chosen], seed, ORDER)
    chosen = chosen[np.lexsort((draw, known.noticed_ns[chosen]))]
    return [known.keys[i] for i in chosen], known.classes[chosen]


@dataclasses.dataclass(frozen=True, slots=True)
class _Scored:
    rows: NDArray[np.int64]
    scores: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        keys: list[str],
        classes: NDArray[np.int64],
        mirror: Mirror,
        logits: Tensor,
        model: SavedModel,
        workspace: Workspace,
    ) -> _Scored:
        """True-class scores on this graph; a class that the model never saw conforms least."""
        rows = np.array([mirror.rows[key] for key in keys], np.int64)
        part = Part(torch.from_numpy(rows), uniforms_of(mirror, rows, model.manifest["seed"]))
        seen = torch.from_numpy(np.maximum(classes, 0))
        scores = calibration_scores(logits, part, seen, workspace.settings.conformal.score).numpy()
        return cls(rows, np.where(classes < 0, -np.inf, scores))
