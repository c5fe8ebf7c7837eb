"""What a run notes for the audit while the network's outputs on this graph are at hand.

Scores move as the graph grows, so two things can be computed at no other time: where the
calibration scores lie today, and how nodes of newly known class rank among nodes of known class on
the same graph, which is what the exchangeability monitor bets on (docs/watching.md).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror
from ringfence.connector.records import Member
from ringfence.connector.store import labels, runs
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms, terms_in_force
from ringfence.jobs.project.workspace import Workspace
from ringfence.models import hashing
from ringfence.models.conformal.evaluate import Evaluation
from ringfence.models.exchangeability.monitor import ExchangeabilityMonitor
from ringfence.models.exchangeability.smoothed_pvalues import (
    degree_strata,
    reference_sample,
    smoothed_p_values,
)

QUANTILES = 201
MAX_REFERENCE_NODES = 2_000
MIN_LABELS_FOR_NUMBA = 300  # below, compiling costs more than it saves
WATCH, ORDER = "watch", "watch order"  # purposes of the hashed uniforms: part of stored numbers
NO_ROWS = np.empty(0, np.int64)


@dataclasses.dataclass(frozen=True, slots=True)
class Labelled:
    """Nodes of known class in the mirror: rows and class numbers (-1: never seen)."""

    rows: NDArray[np.int64]
    classes: NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class MonitorStep:
    """One step of the monitor before the network has run: who is compared with whom."""

    before: ExchangeabilityMonitor
    mark_ns: int
    reference: Labelled
    new: Labelled

    @property
    def rows(self) -> NDArray[np.int64]:
        """Where the network's outputs are needed, the reference first."""
        return np.concatenate([self.reference.rows, self.new.rows])


@dataclasses.dataclass(frozen=True, slots=True)
class Monitored:
    """The scores of all classes [m, classes] and the degrees [m] at the rows of a `MonitorStep`."""

    scores: NDArray[np.float64]
    degree: NDArray[np.int64]


def plan_monitoring(
    workspace: Workspace, model: SavedModel, mirror: Mirror, known: list[Member]
) -> MonitorStep:
    """Compare newly known nodes with a sample of all that were known before."""
    before, mark = _last_state(workspace, model.version)
    nobody = Labelled(NO_ROWS, NO_ROWS)
    if not labels.has_labels_since(workspace.store, workspace.project, model.version, mark):
        return MonitorStep(before, mark, nobody, nobody)  # without reading all that are known
    noticed, labelled = _known_nodes(workspace, model, mirror)
    fresh = noticed > mark
    if not fresh.any():  # those that are new have left the graph
        return MonitorStep(before, mark, nobody, nobody)
    calibration = [member for member in known if member.role == "calibration"]
    rows = mirror.find([member.node_key for member in calibration])
    classes = np.array([member.class_index for member in calibration], np.int64)
    rows, classes = rows[rows >= 0], classes[rows >= 0]
    rows = np.concatenate([rows, labelled.rows[~fresh]])
    classes = np.concatenate([classes, labelled.classes[~fresh]])
    part = reference_sample(len(rows), MAX_REFERENCE_NODES, seed=before.labels)
    order = _order(mirror, labelled.rows[fresh], noticed[fresh], model.manifest["seed"])
    new = Labelled(labelled.rows[fresh][order], labelled.classes[fresh][order])
    return MonitorStep(before, int(noticed.max()), Labelled(rows[part], classes[part]), new)


def score_quantiles(result: Evaluation) -> tuple[float, ...]:
    """Return where the calibration scores lie on this graph: quantiles from 0 to 1."""
    grid = np.linspace(0, 1, QUANTILES)
    quantiles = np.quantile(result.calibration_scores, grid)
    return tuple(round(float(q), 6) for q in quantiles)


def update_monitor(
    workspace: Workspace,
    model: SavedModel,
    mirror: Mirror,
    step: MonitorStep,
    monitored: Monitored,
) -> dict[str, Any]:
    """Return the column `watch` of the run, as JSON values: the monitor's state after it."""
    if len(step.new.rows) == 0:
        return {"state": step.before.as_dict(), "mark_ns": step.mark_ns, "new": 0}
    cut, seed = len(step.reference.rows), model.manifest["seed"]
    terms = terms_in_force(workspace.settings.conformal, model.manifest)
    scores = _true_scores(step, monitored.scores)
    keys = mirror.keys.take(step.new.rows.tolist())
    u = np.maximum(hashing.uniforms(keys, seed, WATCH), 2.0**-53)
    strata = _strata(terms, step, monitored)
    compared = {} if strata is None else {"reference_strata": strata[:cut], "strata": strata[cut:]}
    p = smoothed_p_values(scores[:cut], scores[cut:], u, **compared)
    return {
        "state": _after(step.before, p).as_dict(),
        "mark_ns": step.mark_ns,
        "new": len(p),
        "mean_p": float(p.mean()),
    }


def _strata(
    terms: PromiseTerms, step: MonitorStep, monitored: Monitored
) -> NDArray[np.int64] | None:
    """Who is compared with whom, as in the sets: nodes of like degree, under a promise per class
    nodes of one class (rare ones have a larger share of the calibration nodes than of the rest).
    """
    parts = [] if terms.rule == "NodeEx" else [degree_strata(monitored.degree)]
    if terms.promise == "class":
        parts.append(np.concatenate([step.reference.classes, step.new.classes]))
    if not parts:
        return None
    return np.unique(np.stack(parts), axis=1, return_inverse=True)[1].reshape(-1)


def _true_scores(step: MonitorStep, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """True-class scores on this graph; a class that the model never saw conforms least."""
    classes = np.concatenate([step.reference.classes, step.new.classes])
    own = scores[np.arange(len(classes)), np.maximum(classes, 0)]
    return np.where(classes < 0, -np.inf, own)


def _after(monitor: ExchangeabilityMonitor, p: NDArray[np.float64]) -> ExchangeabilityMonitor:
    if len(p) > MIN_LABELS_FOR_NUMBA:
        return monitor.after(p)
    jumper, mixture = monitor.jumper, monitor.mixture
    for p_value in p.tolist():
        jumper, mixture = jumper.update(p_value), mixture.update(p_value)
    return ExchangeabilityMonitor(jumper, mixture)


def _last_state(workspace: Workspace, version: str) -> tuple[ExchangeabilityMonitor, int]:
    """The monitor as the model's last run left it, and up to when classes were noticed then."""
    last = runs.newest_monitored_run(workspace.store, workspace.project, version)
    if last is None or last.watch is None:
        return ExchangeabilityMonitor.start(), 0
    return ExchangeabilityMonitor.from_dict(last.watch["state"]), int(last.watch["mark_ns"])


def _known_nodes(
    workspace: Workspace, model: SavedModel, mirror: Mirror
) -> tuple[NDArray[np.int64], Labelled]:
    """Evaluated nodes of known class that are in the mirror, and when each class was noticed."""
    known = labels.labels_of_model(workspace.store, workspace.project, model.version)
    index = {name: i for i, name in enumerate(model.classes)}
    rows = mirror.find(known.node_keys)
    classes = np.array([index.get(name, -1) for name in known.labels], np.int64)
    noticed = np.array(known.noticed_ns, np.int64)
    here = rows >= 0
    return noticed[here], Labelled(rows[here], classes[here])


def _order(
    mirror: Mirror, rows: NDArray[np.int64], noticed: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """An order of the newly known that knows nothing of their scores."""
    draw = hashing.uniforms(mirror.keys.take(rows.tolist()), seed, ORDER)
    return np.lexsort((draw, noticed))
