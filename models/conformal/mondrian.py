"""Library only: per-class (Mondrian) calibration, a promise for each class.

A rare class can be missed far more often than alpha while the average is kept. Judging class y by
the calibration nodes of class y alone gives P(y in set | true class is y) >= 1 - alpha for every y.
The price is calibration nodes: each class needs ``guarantee.smallest_n(alpha)`` of its own, and one
that has fewer is in every set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import Array, as_classes, as_floats, as_scores, as_weights, like
from ringfence.models.conformal.sets import p_values, threshold


def class_thresholds(
    scores: Any,
    classes: Any,
    n_classes: int,
    alpha: float,
    weights: Any = None,
    test_weight: float = 1.0,
) -> Array:
    """Return the threshold of each class, from the calibration nodes of that class.

    Args:
        scores: calibration scores of the true classes [n].
        classes: the true classes, 0..n_classes-1 [n].
        n_classes: how many classes there are.
        alpha: share of nodes of each class that may be missed.
        weights: weights of the calibration nodes [n]; None is NodeEx.
        test_weight: weight of the node to evaluate.

    Returns:
        float64 [n_classes]; -inf for a class with too few calibration nodes.

    >>> class_thresholds([0.1, 0.2, 0.3, 0.9], [0, 0, 0, 1], n_classes=2, alpha=0.25)
    array([ 0.1, -inf])
    """
    known = as_scores(scores, "calibration scores", (1,))
    class_of = as_classes(classes, len(known), n_classes)
    mass = None if weights is None else as_weights(weights, len(known))
    thresholds = np.empty(n_classes)
    for y in range(n_classes):
        chosen = None if mass is None else mass[class_of == y]
        thresholds[y] = threshold(known[class_of == y], alpha, chosen, test_weight)
    return like(scores, thresholds)


def class_p_values(
    calibration_scores: Any,
    classes: Any,
    scores: Any,
    weights: Any = None,
    test_weight: Any = 1.0,
) -> Array:
    """Return p-values of each class, computed from the calibration nodes of that class.

    Args:
        calibration_scores: scores of the true classes of the calibration nodes [n].
        classes: those true classes [n].
        scores: scores of the nodes to evaluate [m, classes].
        weights: weights of the calibration nodes [n]; None is NodeEx.
        test_weight: weight of the node to evaluate, or one per node [m].

    Returns:
        float64 [m, classes]; 1 for a class without calibration nodes.

    >>> class_p_values([0.1, 0.2, 0.3, 0.9], [0, 0, 0, 1], [[0.25, 0.25]])
    array([[0.75, 0.5 ]])
    """
    known = as_scores(calibration_scores, "calibration scores", (1,))
    judged = as_scores(scores, "scores", (2,))
    class_of = as_classes(classes, len(known), judged.shape[1])
    mass = None if weights is None else as_weights(weights, len(known))
    p_table = np.empty(judged.shape)
    for y in range(judged.shape[1]):
        chosen = None if mass is None else mass[class_of == y]
        p_table[:, y] = p_values(known[class_of == y], judged[:, y], chosen, test_weight)
    return like(scores, p_table)


def class_prediction_sets(scores: Any, thresholds: Any) -> Array:
    """Return the sets {y : s(v, y) >= threshold of y}.

    Args:
        scores: [m, classes].
        thresholds: [classes], from ``class_thresholds``.

    Returns:
        bool [m, classes].

    >>> class_prediction_sets([[0.2, 0.2]], [0.1, 0.3])
    array([[ True, False]])
    """
    judged = as_scores(scores, "scores", (2,))
    limits = as_floats(thresholds, "thresholds", (1,))
    if len(limits) != judged.shape[1] or np.isnan(limits).any():
        raise ValueError(
            f"{len(limits)} thresholds for {judged.shape[1]} classes; needed: one number per class"
        )
    return like(scores, judged >= limits)
