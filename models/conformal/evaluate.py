"""Evaluation on the graph as it is now: from scores to p-values, thresholds and sets.

The steps are the paper's, per timestep: scores of every calibration node on G_t, the threshold of
the rule, p-values and sets of the nodes to evaluate. Whatever the rule, NodeEx, EdgeEx and naive
thresholds are computed beside it, so that a run can show what the paper's rules would have done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.arrays import as_array
from ringfence.models.calibration.shift_weights import shift_weights
from ringfence.models.conformal.bands import EXPECTED_NODES, band_strata, cut_degrees
from ringfence.models.conformal.judges import judge
from ringfence.models.conformal.sets import threshold
from ringfence.models.conformal.strata import (
    Stratum,
    StratumThreshold,
    bands_of,
    one_stratum,
    stratified_thresholds,
)
from ringfence.models.conformal.weights import edge_weights, with_drift
from ringfence.models.guarantee.law import effective_sample_size

CalibrationRule = Literal["auto", "NodeEx", "EdgeEx"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised and by which rule.

    alphas: shares that may be missed, the first one first · levels: what p-values are compared
    with, by alpha and class [alphas, classes]; None where it is alpha itself (single classes can
    have an alpha of their own, and levels can adapt) · exact_test_weight: EdgeEx with the due
    node's own weight · band_nodes: over the smallest alpha, calibration nodes that a band of
    degrees is expected to hold · shift: in place of bands, weigh calibration nodes by how much more
    often due nodes have their degree.
    """

    alphas: tuple[float, ...]
    rule: CalibrationRule
    levels: Floats | None = None
    exact_test_weight: bool = False
    band_nodes: float = EXPECTED_NODES
    shift: bool = False

    def level_table(self, classes: int) -> Floats:
        """Return the levels by alpha and class [alphas, classes]."""
        if self.levels is not None:
            return self.levels
        return np.repeat(np.array(self.alphas)[:, None], classes, axis=1)


@dataclass(frozen=True, slots=True)
class NodeScores:
    """Scores on one graph: of the calibration nodes' true classes [n], of due nodes [m, classes].

    naive: calibration scores on the graph of the day of training, for comparison.
    """

    known: Floats
    due: Floats
    naive: Floats


@dataclass(frozen=True, slots=True)
class NodeDegrees:
    """Degrees on the same graph: of calibration [n] and due nodes [m]; nodes of each degree.

    counts: how many nodes of the whole graph have degree 0, 1, 2, …; only degree bands ask for it.
    """

    calibration: Ints
    due: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one evaluation decided. Rows follow the due nodes; columns are classes.

    sets: by alpha [alphas, m, classes] · levels: what p-values were compared with [alphas, classes]
    · bands: the name of each due node's stratum · thresholds:
    of every stratum at every alpha · threshold: the only one at the first alpha, None where there
    are several · threshold_node, _edge, _naive: of the paper's rules at the first alpha.
    """

    scores: Floats
    p_values: Floats
    sets: Bools
    levels: Floats
    bands: list[str]
    thresholds: list[StratumThreshold]
    threshold: float | None
    threshold_node: float
    threshold_edge: float
    threshold_naive: float
    n_calibration: int
    effective_calibration: float
    calibration_scores: Floats


def evaluate(
    scores: NodeScores,
    degrees: NodeDegrees,
    promise: Promise,
    drift: Floats | None = None,
    strata: Sequence[Stratum] | None = None,
    workers: int = 1,
) -> Evaluation:
    """Return p-values and sets of the due nodes, calibrated on the graph as it is now.

    Args:
        scores: of calibration and due nodes.
        degrees: of the same nodes, and of all; under EdgeEx each due node has a neighbour.
        promise: alphas, rule and levels.
        drift: weights of the calibration nodes in [0, 1] [n]; they multiply those of any rule.
        strata: who judges whom, where the rule alone does not say it (`rule_strata`).
        workers: threads that share the due nodes.
    """
    chosen = rule_strata(promise, degrees, drift) if strata is None else strata
    levels = promise.level_table(scores.due.shape[1])
    p, sets = judge(scores.known, scores.due, chosen, levels, workers)
    found = stratified_thresholds(scores.known, chosen, promise.alphas, levels)
    first = [one.threshold for one in found if one.alpha == promise.alphas[0]]
    used, n = chosen[0].weights if promise.shift else drift, len(scores.known)
    if promise.rule == "EdgeEx":
        everybody = _edge_stratum(promise, degrees, drift)
        used, n = everybody.weights, len(everybody.calibration)
    node, edge = _paper_thresholds(scores.known, degrees.calibration, promise.alphas[0], drift)
    return Evaluation(
        scores=scores.due,
        p_values=p,
        sets=sets,
        levels=levels,
        bands=bands_of(chosen, len(scores.due)),
        thresholds=found,
        threshold=first[0] if len(first) == 1 else None,
        threshold_node=node,
        threshold_edge=edge,
        threshold_naive=float(threshold(scores.naive, promise.alphas[0])),
        n_calibration=n,
        effective_calibration=float(n) if used is None or n == 0 else effective_sample_size(used),
        calibration_scores=scores.known,
    )


def rule_strata(
    promise: Promise, degrees: NodeDegrees, drift: Floats | None = None
) -> list[Stratum]:
    """Return who judges whom under the promise's rule."""
    n, m = len(degrees.calibration), len(degrees.due)
    if promise.shift:
        ratio = shift_weights(degrees.calibration, degrees.due)
        weights = ratio.calibration if drift is None else ratio.calibration * drift
        return one_stratum(n, m, weights, ratio.due)
    if promise.rule == "NodeEx":
        return one_stratum(n, m, drift)
    if promise.rule == "EdgeEx":
        return [_edge_stratum(promise, degrees, drift)]
    alpha = min(promise.alphas)
    lows = cut_degrees(degrees.counts, n, alpha, promise.band_nodes)
    strata = band_strata(lows, degrees.calibration, degrees.due, alpha)
    if drift is None:
        return strata
    return [replace(one, weights=drift[one.calibration]) for one in strata]


def degrees(edge_index: Ints, nodes: int) -> Ints:
    """Library only: the number of distinct neighbours of each node, int64 [n].

    Directions, parallels and loops do not count.

    >>> degrees(np.array([[0, 1, 2], [1, 0, 1]]), nodes=4)
    array([1, 2, 1, 0])
    """
    edges = as_array(edge_index).astype(np.int64)
    low, high = edges.min(axis=0), edges.max(axis=0)
    pairs = np.unique((low * nodes + high)[low != high])
    ends = np.concatenate([pairs // max(nodes, 1), pairs % max(nodes, 1)])
    return np.bincount(ends, minlength=nodes)


def degree_counts(of_nodes: Ints) -> Ints:
    """Return how many nodes have degree 0, 1, 2, ….

    >>> degree_counts(np.array([1, 1, 3])).tolist()
    [0, 2, 0, 1]
    """
    return np.bincount(of_nodes).astype(np.int64)


def _edge_stratum(promise: Promise, degrees: NodeDegrees, drift: Floats | None) -> Stratum:
    """EdgeEx: everybody with a neighbour, weights 1 / degree; others don't exist yet."""
    present = np.flatnonzero(degrees.calibration > 0)
    weights = np.asarray(edge_weights(degrees.calibration[present]))
    if drift is not None:
        weights = np.asarray(with_drift(weights, drift[present]))
    test = np.asarray(edge_weights(degrees.due)) if promise.exact_test_weight else 1.0
    everybody = np.arange(len(degrees.due))
    return Stratum("", present, everybody, None, weights, test)


def _paper_thresholds(
    known: Floats, degree: Ints, alpha: float, drift: Floats | None
) -> tuple[float, float]:
    """Return what NodeEx and EdgeEx would have had as their threshold."""
    present = degree > 0
    weights = np.asarray(edge_weights(degree[present]))
    if drift is not None:
        weights = np.asarray(with_drift(weights, drift[present]))
    node = float(threshold(known, alpha, drift))
    return node, float(threshold(known[present], alpha, weights))
