"""What a run records for the audit while the network's outputs on this graph are available.

Scores move as the graph grows, so two things can be computed at no other time: where the
calibration scores lie today, and how nodes of newly known class rank among nodes of known class on
the same graph, which is what the exchangeability monitor bets on (docs/watching.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import Mirror, find_recorded, record_keys_at
from ringfence.connector.store import labels, runs
from ringfence.connector.store.calibration.run_basis import MonitorInput
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.promise import PromiseTerms
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.scoring.calibration.calibration_set import find_early_runs
from ringfence.jobs.scoring.monitor_order import Held, KnownTimes, choose_new
from ringfence.jobs.scoring.version_on_graph import VersionOnGraph
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
HELD = "held"  # of the column `watch`: runs whose labels wait, and since when
NO_ROWS = np.empty(0, np.int64)
NOTHING_HELD: Held = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Labelled:
    """Nodes of known class in the mirror: rows and class numbers (-1: never seen)."""

    rows: NDArray[np.int64]
    classes: NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True)
class MonitorStep:
    """One step of the monitor before the network has run: which nodes are compared.

    held: runs whose labels wait until the run is settled (`monitor_order`).
    """

    before: ExchangeabilityMonitor
    mark_ns: int
    reference: Labelled
    new: Labelled
    held: Held

    @property
    def rows(self) -> NDArray[np.int64]:
        """Where the network's outputs are needed, the reference first."""
        return np.concatenate([self.reference.rows, self.new.rows])


@dataclasses.dataclass(frozen=True, slots=True)
class Monitored:
    """The scores of all classes [m, classes] and the degrees [m] at the rows of a `MonitorStep`."""

    scores: NDArray[np.float64]
    degree: NDArray[np.int64]


def plan_monitoring(version: VersionOnGraph) -> MonitorStep:
    """Compare newly known nodes with a sample of all that were known before."""
    workspace, model, mirror = version.workspace, version.model, version.mirror
    before, mark, held = _last_state(workspace, model.version)
    nobody = Labelled(NO_ROWS, NO_ROWS)
    if not held and not labels.has_labels_since(
        workspace.store, workspace.project, model.version, mark
    ):  # without reading all that are known
        return MonitorStep(before, mark, nobody, nobody, held)
    times, labelled = _known_nodes(workspace, model, mirror)
    chosen = choose_new(times, mark, held, _early_runs(version))
    fresh, mark = chosen.new, int(times.noticed_ns.max(initial=mark))
    if not fresh.any():  # those that are new have left the graph, or wait
        return MonitorStep(before, mark, nobody, nobody, chosen.held)
    calibration = version.training_members
    rows = find_recorded(mirror, [member.node_key for member in calibration])
    classes = np.array([member.class_index for member in calibration], np.int64)
    rows, classes = rows[rows >= 0], classes[rows >= 0]
    rows = np.concatenate([rows, labelled.rows[chosen.reference]])
    classes = np.concatenate([classes, labelled.classes[chosen.reference]])
    part = reference_sample(len(rows), MAX_REFERENCE_NODES, seed=before.labels)
    released = chosen.released_ns[fresh]
    order = _order(mirror, labelled.rows[fresh], released, version.node_seed)
    new = Labelled(labelled.rows[fresh][order], labelled.classes[fresh][order])
    return MonitorStep(before, mark, Labelled(rows[part], classes[part]), new, chosen.held)


def _early_runs(version: VersionOnGraph) -> Collection[int]:
    """The runs whose labels wait; none where nodes are compared within their class."""
    if version.terms.promise_kind.per_class:
        return ()
    return find_early_runs(version.workspace, version.model, version.calibration)


def score_quantiles(result: Evaluation) -> tuple[float, ...]:
    """Return where the calibration scores lie on this graph: quantiles from 0 to 1."""
    grid = np.linspace(0, 1, QUANTILES)
    quantiles = np.quantile(result.calibration_scores, grid)
    return tuple(round(float(q), 6) for q in quantiles)


def update_monitor(
    version: VersionOnGraph, step: MonitorStep, monitored: Monitored
) -> tuple[dict[str, Any], MonitorInput]:
    """Return the column `watch` of the run, as JSON values, and what the monitor was fed with."""
    if len(step.new.rows) == 0:
        return describe_state(step.before, step.mark_ns, (), step.held), MonitorInput()
    cut = len(step.reference.rows)
    scores = _true_scores(step, monitored.scores)
    keys = record_keys_at(version.mirror, step.new.rows)
    u = np.maximum(hashing.uniforms(keys, version.node_seed, WATCH), 2.0**-53)
    strata = _strata(version.terms, step, monitored)
    compared = {} if strata is None else {"reference_strata": strata[:cut], "strata": strata[cut:]}
    p = smoothed_p_values(scores[:cut], scores[cut:], u, **compared)
    fed = MonitorInput(tuple(keys), tuple(p.tolist()))
    return describe_state(step.before, step.mark_ns, fed.p_values, step.held), fed


def describe_state(
    before: ExchangeabilityMonitor, mark_ns: int, fed: Sequence[float], held: Held = NOTHING_HELD
) -> dict[str, Any]:
    """Return the column `watch` of a run: the monitor after it was fed, and up to when it knows.

    Where labels of runs are held back, also those runs and up to when their labels were seen.
    """
    waiting = {HELD: {str(run): since for run, since in held.items()}} if held else {}
    if not fed:
        return {"state": before.as_dict(), "mark_ns": mark_ns, "new": 0, **waiting}
    p = np.array(fed, np.float64)
    return {
        "state": _after(before, p).as_dict(),
        "mark_ns": mark_ns,
        "new": len(p),
        "mean_p": float(p.mean()),
        **waiting,
    }


def _strata(
    terms: PromiseTerms, step: MonitorStep, monitored: Monitored
) -> NDArray[np.int64] | None:
    """Which nodes are compared, as in the sets: nodes of like degree, under a promise per class
    nodes of one class (rare ones have a larger share of the calibration nodes than of the rest).
    """
    parts = [degree_strata(monitored.degree)] if terms.rule_kind.monitored_by_degree else []
    if terms.promise_kind.per_class:
        parts.append(np.concatenate([step.reference.classes, step.new.classes]))
    if not parts:
        return None
    return np.unique(np.stack(parts), axis=1, return_inverse=True)[1].reshape(-1)


def _true_scores(step: MonitorStep, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """True-class scores on this graph; a class that the model never saw conforms least."""
    classes = np.concatenate([step.reference.classes, step.new.classes])
    of_class = scores[np.arange(len(classes)), np.maximum(classes, 0)]
    return np.where(classes < 0, -np.inf, of_class)


def _after(monitor: ExchangeabilityMonitor, p: NDArray[np.float64]) -> ExchangeabilityMonitor:
    if len(p) > MIN_LABELS_FOR_NUMBA:
        return monitor.after(p)
    jumper, mixture = monitor.jumper, monitor.mixture
    for p_value in p.tolist():
        jumper, mixture = jumper.update(p_value), mixture.update(p_value)
    return ExchangeabilityMonitor(jumper, mixture)


def _last_state(workspace: Workspace, version: str) -> tuple[ExchangeabilityMonitor, int, Held]:
    """The monitor as the model's last run left it, up to when classes were noticed, what waited."""
    last = runs.newest_monitored_run(workspace.store, workspace.project, version)
    if last is None or last.watch is None:
        return ExchangeabilityMonitor.start(), 0, {}
    held = {int(run): int(since) for run, since in last.watch.get(HELD, {}).items()}
    state = ExchangeabilityMonitor.from_dict(last.watch["state"])
    return state, int(last.watch["mark_ns"]), held


def _known_nodes(
    workspace: Workspace, model: SavedModel, mirror: Mirror
) -> tuple[KnownTimes, Labelled]:
    """Evaluated nodes of known class that are in the mirror, and when each class was noticed."""
    known = labels.labels_of_model(workspace.store, workspace.project, model.version)
    index = {name: i for i, name in enumerate(model.classes)}
    rows = find_recorded(mirror, known.node_keys)
    classes = np.array([index.get(name, -1) for name in known.labels], np.int64)
    noticed = np.array(known.noticed_ns, np.int64)
    evaluated_in = np.array(known.evaluated_in, np.int64)
    here = rows >= 0
    times = KnownTimes(evaluated_in[here], noticed[here])
    return times, Labelled(rows[here], classes[here])


def _order(
    mirror: Mirror, rows: NDArray[np.int64], released: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """An order of the newly known nodes that does not depend on their scores."""
    draw = hashing.uniforms(record_keys_at(mirror, rows), seed, ORDER)
    return np.lexsort((draw, released))
