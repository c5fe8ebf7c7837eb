"""Evaluation on the graph as it is now: from scores to p-values, thresholds and sets.

The steps are the paper's, per timestep: scores of every calibration node on G_t, the threshold of
the rule, p-values and sets of the nodes to evaluate. Whatever the rule, NodeEx, EdgeEx and naive
thresholds are computed beside it, so that a run can show what the paper's rules would have done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.arrays import as_array
from ringfence.models.calibration.shift_weights import shift_weights
from ringfence.models.conformal.batched_p_values import compute_p_values
from ringfence.models.conformal.sets import threshold
from ringfence.models.conformal.strata import (
    Stratum,
    StratumThreshold,
    bands_of,
    one_stratum,
    stratified_thresholds,
)
from ringfence.models.guarantee.law import effective_sample_size
from ringfence.models.rules.base import NodeDegrees, Promise
from ringfence.models.rules.edge_ex import weigh_by_edges

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

__all__ = [
    "Evaluation",
    "NodeDegrees",
    "NodeScores",
    "Promise",
    "degree_counts",
    "degrees",
    "evaluate",
    "rule_strata",
]


@dataclass(frozen=True, slots=True)
class NodeScores:
    """Scores on one graph: of the calibration nodes' true classes [n], of due nodes [m, classes].

    naive: calibration scores on the graph of the day of training, for comparison.
    """

    known: Floats
    due: Floats
    naive: Floats


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
        strata: which calibration nodes each due node is compared with; None: those of the rule
            (`rule_strata`).
        workers: threads that share the due nodes.
    """
    chosen = rule_strata(promise, degrees, drift) if strata is None else strata
    levels = promise.level_table(scores.due.shape[1])
    p, sets = compute_p_values(scores.known, scores.due, chosen, levels, workers)
    thresholds = stratified_thresholds(scores.known, chosen, promise.alphas, levels)
    first = [row.threshold for row in thresholds if row.alpha == promise.alphas[0]]
    used, n = promise.rule.calibration_weights(degrees, drift)
    if promise.shift:
        used = chosen[0].weights
    node, edge = _paper_thresholds(scores.known, degrees.calibration, promise.alphas[0], drift)
    return Evaluation(
        scores=scores.due,
        p_values=p,
        sets=sets,
        levels=levels,
        bands=bands_of(chosen, len(scores.due)),
        thresholds=thresholds,
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
    """Return the strata of the promise's rule."""
    if not promise.shift:
        return promise.rule.strata(promise, degrees, drift)
    ratio = shift_weights(degrees.calibration, degrees.due)
    weights = ratio.calibration if drift is None else ratio.calibration * drift
    return one_stratum(len(degrees.calibration), len(degrees.due), weights, ratio.due)


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


def _paper_thresholds(
    known: Floats, degree: Ints, alpha: float, drift: Floats | None
) -> tuple[float, float]:
    """Return the thresholds of the paper's rules NodeEx and EdgeEx."""
    present, weights = weigh_by_edges(degree, drift)
    node = float(threshold(known, alpha, drift))
    return node, float(threshold(known[present], alpha, weights))
