"""Evaluation on the graph as it is now: from logits to p-values, thresholds and sets.

The steps are the paper's, per timestep: scores of every calibration node on G_t, the threshold of
the rule, p-values and sets of the nodes to evaluate. NodeEx, EdgeEx and naive thresholds are all
computed, so that a run can show what the other rules would have done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.models.arrays import Array, Floats, as_array
from ringfence.models.conformal.sets import p_values, sets_from_p_values, threshold
from ringfence.models.conformal.weights import edge_weights, with_drift
from ringfence.models.guarantee.law import effective_sample_size
from ringfence.models.scores import score_named, softmax64

CalibrationRule = Literal["NodeEx", "EdgeEx"]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised and by which rule; part of a run's record.

    score: a name in `ringfence.models.scores.SCORES` that needs no options.
    """

    alpha: float
    rule: CalibrationRule
    score: str
    exact_test_weight: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Some nodes of the graph: their rows, and each one's own uniform number u."""

    rows: Ints
    u: Floats


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one evaluation decided. Rows follow the evaluated part; columns are classes."""

    scores: Floats
    p_values: Floats
    sets: NDArray[np.bool_]
    threshold: float
    threshold_node: float
    threshold_edge: float
    threshold_naive: float
    n_calibration: int
    effective_calibration: float
    calibration_scores: Floats


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


def calibration_scores(logits: Array, part: Part, classes: Ints, score: str) -> Floats:
    """Return the scores of the true classes of `part` on the graph that gave `logits` [n]."""
    probabilities = softmax64(logits[part.rows])
    return score_named(score).true_class(probabilities, part.u, classes)


def evaluate(
    logits: Array,
    degree: Ints,
    calibration: Part,
    calibration_classes: Ints,
    due: Part,
    promise: Promise,
    naive_scores: Floats,
    drift: Floats | None = None,
) -> Evaluation:
    """Return sets of the due nodes at level 1 - alpha, calibrated on the graph as it is now.

    Args:
        logits: outputs of the network on the whole graph [nodes, classes].
        degree: `degrees` of the same graph [nodes].
        calibration: the calibration nodes.
        calibration_classes: their true classes [n].
        due: the nodes to evaluate; under EdgeEx each has at least one neighbour.
        promise: alpha, rule and score.
        naive_scores: calibration scores on the graph of the day of training, for comparison.
        drift: `weights.drift_weights` of the calibration nodes [n]; they multiply either rule.
    """
    known = calibration_scores(logits, calibration, calibration_classes, promise.score)
    probabilities = softmax64(logits[due.rows])
    scores = score_named(promise.score).all_classes(probabilities, due.u)
    present = degree[calibration.rows] > 0  # an isolated node doesn't exist yet under EdgeEx
    weights = edge_weights(degree[calibration.rows][present])
    if drift is not None:
        weights = with_drift(weights, drift[present])
    alpha = promise.alpha
    if promise.rule == "NodeEx":
        p = p_values(known, scores, drift)
        n, used = len(known), drift
    else:
        exact = promise.exact_test_weight
        test_weight = edge_weights(degree[due.rows]) if exact else 1.0
        p = p_values(known[present], scores, weights, test_weight)
        n, used = int(present.sum()), weights
    effective = float(n) if used is None or n == 0 else effective_sample_size(used)
    node = float(threshold(known, alpha, drift))
    edge = float(threshold(known[present], alpha, weights))
    return Evaluation(
        scores=scores,
        p_values=p,
        sets=sets_from_p_values(p, alpha),
        threshold=node if promise.rule == "NodeEx" else edge,
        threshold_node=node,
        threshold_edge=edge,
        threshold_naive=float(threshold(naive_scores, alpha)),
        n_calibration=n,
        effective_calibration=effective,
        calibration_scores=known,
    )
