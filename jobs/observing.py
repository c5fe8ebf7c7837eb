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
from ringfence.connector.models import Member
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
class Labelled:
    """Nodes of known class in the mirror: rows and class numbers (-1: never seen)."""

    rows: NDArray[np.int64]
    classes: NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class Watching:
    """One step of the watch before the network has run: who is compared with whom."""

    before: Watch
    mark_ns: int
    reference: Labelled
    new: Labelled

    @property
    def rows(self) -> NDArray[np.int64]:
        """Where the network's outputs are needed, the reference first."""
        return np.concatenate([self.reference.rows, self.new.rows])


def plan_watch(
    workspace: Workspace, model: SavedModel, mirror: Mirror, known: list[Member]
) -> Watching:
    """Newly known nodes against a sample of all that were known before."""
    before, mark = _last(workspace, model.version)
    noticed, labelled = _known(workspace, model, mirror)
    fresh = noticed > mark
    if not fresh.any():
        nobody = Labelled(np.empty(0, np.int64), np.empty(0, np.int64))
        return Watching(before, mark, nobody, nobody)
    calibration = [one for one in known if one.role == "calibration"]
    rows = mirror.find([one.node_key for one in calibration])
    classes = np.array([one.class_index for one in calibration], np.int64)
    rows, classes = rows[rows >= 0], classes[rows >= 0]
    rows = np.concatenate([rows, labelled.rows[~fresh]])
    classes = np.concatenate([classes, labelled.classes[~fresh]])
    part = reference_sample(len(rows), REFERENCE, seed=before.labels)
    order = _order(mirror, labelled.rows[fresh], noticed[fresh], model.manifest["seed"])
    new = Labelled(labelled.rows[fresh][order], labelled.classes[fresh][order])
    return Watching(before, int(noticed.max()), Labelled(rows[part], classes[part]), new)


def observe(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    watching: Watching,
    logits: Tensor,
    degree: NDArray[np.int64],
    result: Evaluation,
) -> dict[str, Any]:
    """Return the columns `calibration_scores` and `watch` of the run's row.

    `logits` and `degree` are those of `watching.rows`, in their order.
    """
    grid = np.linspace(0, 1, QUANTILES)
    quantiles = np.quantile(result.calibration_scores.numpy(), grid)
    return {
        "calibration_scores": dumps([round(float(q), 6) for q in quantiles]),
        "watch": dumps(_watch(workspace, model, mirror, watching, logits, degree)),
    }


def _watch(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    watching: Watching,
    logits: Tensor,
    degree: NDArray[np.int64],
) -> dict[str, Any]:
    if len(watching.new.rows) == 0:
        return {"state": watching.before.as_dict(), "mark_ns": watching.mark_ns, "new": 0}
    cut, seed = len(watching.reference.rows), model.manifest["seed"]
    scores = _true_scores(workspace, mirror, watching, logits, seed)
    keys = mirror.keys.take(watching.new.rows.tolist())
    u = np.maximum(keyed.uniforms(keys, seed, WATCH), 2.0**-53)
    strata = {}
    if workspace.settings.conformal.rule == "EdgeEx":
        strata = {
            "reference_strata": degree_strata(degree[:cut]),
            "strata": degree_strata(degree[cut:]),
        }
    p = smoothed_p_values(scores[:cut], scores[cut:], u, **strata)
    state = _after(watching.before, p)
    return {
        "state": state.as_dict(),
        "mark_ns": watching.mark_ns,
        "new": len(p),
        "mean_p": float(p.mean()),
    }


def _true_scores(
    workspace: Workspace, mirror: Mirror, watching: Watching, logits: Tensor, seed: int
) -> NDArray[np.float64]:
    """True-class scores on this graph; a class that the model never saw conforms least."""
    classes = np.concatenate([watching.reference.classes, watching.new.classes])
    part = Part(torch.arange(len(classes)), uniforms_of(mirror, watching.rows, seed))
    seen = torch.from_numpy(np.maximum(classes, 0))
    scores = calibration_scores(logits, part, seen, workspace.settings.conformal.score).numpy()
    return np.where(classes < 0, -np.inf, scores)


def filled(result: Evaluation) -> tuple[Evaluation, list[str]]:
    """Put the likeliest class into empty sets; return the result and a note where there were."""
    empty = int((~result.sets.any(dim=1)).sum())
    sets = fill_empty(result.sets, result.scores)
    note = f"{empty} empty sets were given their likeliest class (nonempty = true)"
    return dataclasses.replace(result, sets=sets), [note] if empty else []


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


def _known(
    workspace: Workspace, model: SavedModel, mirror: Mirror
) -> tuple[NDArray[np.int64], Labelled]:
    """Evaluated nodes of known class that are in the mirror, and when each class was noticed."""
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
        found = connection.execute(query).all()
    index = {name: i for i, name in enumerate(model.classes)}
    rows = mirror.find([row.node_key for row in found])
    classes = np.array([index.get(row.label, -1) for row in found], np.int64)
    noticed = np.array([row.labelled_ns for row in found], np.int64)
    here = rows >= 0
    return noticed[here], Labelled(rows[here], classes[here])


def _order(
    mirror: Mirror, rows: NDArray[np.int64], noticed: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """An order of the newly known that knows nothing of their scores."""
    draw = keyed.uniforms(mirror.keys.take(rows.tolist()), seed, ORDER)
    return np.lexsort((draw, noticed))
