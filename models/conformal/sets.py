"""Thresholds, p-values and prediction sets: the conformal core.

With calibration scores s_i, weights w_i and the test weight w (higher score = agrees more),

    p(v, y) = (sum of w_i over s_i <= s(v, y)  +  w) / (sum of all w_i  +  w)
    y is in the set of v at level alpha   <=>   p(v, y) > alpha   <=>   s(v, y) >= q
    q = smallest s_(k) with p at s_(k) > alpha;  -inf where w / (sum of all w_i + w) > alpha

Unweighted, q is the l-th smallest score with l = floor(alpha (n + 1)). docs/mathematics.md proves
the equivalence, and says where the printed quantile and other libraries go wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import (
    Array,
    Floats,
    as_array,
    as_limits,
    as_scores,
    as_test_weights,
    as_weights,
    check_per_node,
    like,
)
from ringfence.models.conformal import calibration_ranks
from ringfence.models.conformal.rank import rank, read_alpha, read_alphas
from ringfence.models.conformal.weighted import first_above, p_each, p_table


def threshold(scores: Any, alpha: Any, weights: Any = None, test_weight: Any = 1.0) -> Array:
    """Return the threshold q: classes that score at least q are in the set.

    Args:
        scores: calibration scores of the true classes [n].
        alpha: share of nodes that may be missed, or a sequence of k such shares.
        weights: weights of the calibration nodes [n], at least 0; None is NodeEx (all 1).
        test_weight: weight of the node to evaluate, above 0; 1 is the safe default. Several [m]
            give one threshold per node.

    Returns:
        float64: [] for one alpha, [k] for k alphas; [m] or [k, m] with m test weights. -inf (the
        full set) where there are too few calibration nodes for alpha.

    >>> threshold([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], alpha=0.2)
    array(0.2)
    >>> threshold([0.1, 0.2, 0.3, 0.4, 0.5], alpha=0.1)
    array(-inf)
    """
    known = as_scores(scores, "calibration scores", (1,))
    alphas, single = read_alphas(alpha)
    tests = as_test_weights(test_weight)
    if weights is None and tests.ndim == 0 and tests == 1.0:
        limits = _unweighted(known, alphas)
    else:
        limits = _weighted(known, alphas, as_weights(weights, len(known)), tests)
    return like(scores, np.asarray(limits[0]) if single else limits)


def p_values(
    calibration_scores: Any, scores: Any, weights: Any = None, test_weight: Any = 1.0
) -> Array:
    """Return the conformal p-value of each score.

    Unweighted it is (1 + number of calibration scores <= s) / (n + 1), one correctly rounded
    double, so that ``p > alpha`` is exact also where p equals alpha as a fraction; weighted it is
    the correctly rounded quotient of the exact sums.

    Args:
        calibration_scores: scores of the true classes of the calibration nodes [n].
        scores: scores to judge, [m] or [m, classes].
        weights: weights of the calibration nodes [n]; None is NodeEx (all 1).
        test_weight: weight of the node to evaluate, or one per node [m].

    Returns:
        float64, the shape of scores, in (0, 1].

    >>> p_values([0.2, 0.4, 0.6, 0.8], [[0.1, 0.9], [0.5, 0.4]])
    array([[0.2, 1. ],
           [0.6, 0.6]])
    """
    known = as_scores(calibration_scores, "calibration scores", (1,))
    judged = as_scores(scores, "scores", (1, 2))
    tests = as_test_weights(test_weight)
    plain = weights is None and tests.ndim == 0 and tests == 1.0
    ordered, mass = calibration_ranks.order(
        known, None if weights is None else as_weights(weights, len(known))
    )
    if tests.ndim == 0:
        table = None if plain else p_table(mass, float(tests))
        return like(scores, calibration_ranks.p_of_counts(ordered, judged, table))
    check_per_node(tests, len(judged), "test_weight")
    counts = calibration_ranks.count_at_most(ordered, judged)
    p = p_each(mass, counts.reshape(len(judged), *judged.shape[1:] or (1,)), tests)
    return like(scores, p.reshape(judged.shape))


def prediction_sets(scores: Any, threshold: Any) -> Array:
    """Return the prediction sets: True where s(v, y) >= threshold.

    Args:
        scores: [m, classes], or [m].
        threshold: a number, or one per node [m].

    Returns:
        bool, the shape of scores. A row without True is an empty set: no class conforms.

    >>> prediction_sets([[0.9, 0.1], [0.5, 0.5]], threshold=0.2)
    array([[ True, False],
           [ True,  True]])
    """
    judged = as_scores(scores, "scores", (1, 2))
    limits = as_limits(threshold, len(judged))
    each = limits[:, None] if limits.ndim == 1 and judged.ndim == 2 else limits
    return like(scores, judged >= each)


def sets_from_p_values(p: Any, alpha: Any) -> Array:
    """Return the prediction sets at level alpha: True where p > alpha.

    Args:
        p: p-values, any shape.
        alpha: one share, e.g. 0.1.

    >>> sets_from_p_values([[0.1, 0.5]], alpha=0.1)
    array([[False,  True]])
    """
    return like(p, as_array(p, np.float64) > read_alpha(alpha))


def sets_at_levels(p: Floats, levels: Floats) -> Array:
    """Return the sets at levels that classes may have of their own: True where p > level.

    Args:
        p: p-values [m, classes].
        levels: by alpha and class [alphas, classes].

    Returns:
        bool [alphas, m, classes].

    >>> sets_at_levels(np.array([[0.1, 0.5]]), np.array([[0.1, 0.2], [0.05, 0.6]])).tolist()
    [[[False, True]], [[True, False]]]
    """
    return np.asarray(p[None, :, :] > levels[:, None, :])


def fill_empty(sets: Any, scores: Any) -> Array:
    """Put the best-scoring class into each empty set; coverage can only rise.

    Args:
        sets: bool [m, classes].
        scores: the scores they were made from [m, classes]; classes that tie for the best all join.

    Returns:
        bool [m, classes], no row empty.

    >>> fill_empty([[False, False], [True, False]], [[-0.9, -0.8], [-0.1, -0.9]])
    array([[False,  True],
           [ True, False]])
    """
    given, judged = as_array(sets, np.bool_), as_scores(scores, "scores", (2,))
    if given.shape != judged.shape:
        raise ValueError(
            f"sets have shape {list(given.shape)}, scores {list(judged.shape)}; needed: the same"
        )
    best = judged == judged.max(axis=1, keepdims=True)
    return like(sets, given | (best & ~given.any(axis=1, keepdims=True)))


def _unweighted(known: Floats, alphas: list[float]) -> Floats:
    n = len(known)
    ranks = [rank(n, alpha) for alpha in alphas]
    inner = sorted({nth - 1 for nth in ranks if 0 < nth <= n})
    ordered = np.partition(known, inner) if inner else known
    padded = {nth: ordered[nth - 1] for nth in ranks if 0 < nth <= n}
    return np.array([padded.get(nth, np.inf if nth else -np.inf) for nth in ranks])


def _weighted(known: Floats, alphas: list[float], weights: Floats, tests: Floats) -> Floats:
    ordered, mass = calibration_ranks.order(known, weights)
    candidates = np.concatenate(([-np.inf], ordered, [np.inf]))
    places = first_above(mass, tests.reshape(-1), alphas)
    return np.asarray(candidates[places].reshape(len(alphas), *tests.shape))
