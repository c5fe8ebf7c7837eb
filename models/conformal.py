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
import torch

from ringfence.models._arrays import Array, Floats, as_array, as_floats, as_scores, like
from ringfence.models._weighted import p_table
from ringfence.models.rank import rank, read_alpha, read_alphas


def threshold(scores: Any, alpha: Any, weights: Any = None, test_weight: Any = 1.0) -> torch.Tensor:
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
    tensor(0.2000, dtype=torch.float64)
    >>> threshold([0.1, 0.2, 0.3, 0.4, 0.5], alpha=0.1)
    tensor(-inf, dtype=torch.float64)
    """
    known = as_scores(scores, "calibration scores", (1,))
    alphas, single = read_alphas(alpha)
    tests = _test_weights(test_weight)
    if weights is None and tests.ndim == 0 and tests == 1.0:
        found = _unweighted(known, alphas)
    else:
        found = _weighted(known, alphas, _weights(weights, len(known)), tests)
    return like(scores, found[0] if single else found)


def p_values(
    calibration_scores: Any, scores: Any, weights: Any = None, test_weight: Any = 1.0
) -> torch.Tensor:
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
    tensor([[0.2000, 1.0000],
            [0.6000, 0.6000]], dtype=torch.float64)
    """
    known = as_scores(calibration_scores, "calibration scores", (1,))
    judged = as_scores(scores, "scores", (1, 2))
    tests = _test_weights(test_weight)
    order = None if weights is None else np.argsort(known, kind="stable")
    ordered = np.sort(known) if order is None else known[order]
    ranks = np.searchsorted(ordered, judged, side="right")
    if weights is None and tests.ndim == 0 and tests == 1.0:
        return like(scores, (ranks + 1) / (len(known) + 1))
    mass = _weights(weights, len(known))
    return like(scores, _lookup(ranks, mass if order is None else mass[order], tests))


def prediction_sets(scores: Any, threshold: Any) -> torch.Tensor:
    """Return the prediction sets: True where s(v, y) >= threshold.

    Args:
        scores: [m, classes], or [m].
        threshold: a number, or one per node [m].

    Returns:
        bool, the shape of scores. A row without True is an empty set: no class conforms.

    >>> prediction_sets([[0.9, 0.1], [0.5, 0.5]], threshold=0.2)
    tensor([[ True, False],
            [ True,  True]])
    """
    judged = as_scores(scores, "scores", (1, 2))
    limit = as_floats(threshold, "threshold", (0, 1))
    if np.isnan(limit).any():
        raise ValueError("threshold is NaN; needed: a number, or -inf for the full set")
    return like(scores, judged >= _per_node(limit, judged, "threshold"))


def sets_from_p_values(p: Any, alpha: Any) -> torch.Tensor:
    """Return the prediction sets at level alpha: True where p > alpha.

    Args:
        p: p-values, any shape.
        alpha: one share, e.g. 0.1.

    >>> sets_from_p_values([[0.1, 0.5]], alpha=0.1)
    tensor([[False,  True]])
    """
    return like(p, as_array(p, np.float64) > read_alpha(alpha))


def _unweighted(known: Floats, alphas: list[float]) -> Floats:
    n = len(known)
    ranks = [rank(n, alpha) for alpha in alphas]
    inner = sorted({found - 1 for found in ranks if 0 < found <= n})
    ordered = np.partition(known, inner) if inner else known
    padded = {found: ordered[found - 1] for found in ranks if 0 < found <= n}
    return np.array([padded.get(found, np.inf if found else -np.inf) for found in ranks])


def _weighted(known: Floats, alphas: list[float], weights: Floats, tests: Floats) -> Floats:
    order = np.argsort(known, kind="stable")
    candidates = np.concatenate(([-np.inf], known[order], [np.inf]))
    distinct, back = np.unique(tests, return_inverse=True)
    tables = [p_table(weights[order], float(w)) for w in distinct]
    found = [[candidates[np.searchsorted(t, a, side="right")] for t in tables] for a in alphas]
    return np.array(found, dtype=np.float64).reshape(len(alphas), -1)[:, back.reshape(tests.shape)]


def _lookup(ranks: Array, weights: Floats, tests: Floats) -> Floats:
    if tests.ndim == 0:
        return p_table(weights, float(tests))[ranks]
    _per_node(tests, ranks, "test_weight")
    found = np.empty(ranks.shape)
    for weight in np.unique(tests):
        rows = tests == weight
        found[rows] = p_table(weights, float(weight))[ranks[rows]]
    return found


def _weights(weights: Any, n: int) -> Floats:
    array = np.ones(n) if weights is None else as_floats(weights, "weights", (1,))
    if len(array) != n:
        raise ValueError(f"{len(array)} weights for {n} calibration scores; needed: one per score")
    if n and not (array.min() >= 0.0 and array.max() < np.inf):
        raise ValueError(
            f"weights lie in [{array.min()}, {array.max()}]; needed: finite numbers of at least 0. "
            "Under EdgeEx a node without an edge has no weight: leave it out"
        )
    return array


def _test_weights(test_weight: Any) -> Floats:
    array = as_floats(test_weight, "test_weight", (0, 1))
    if array.size and not (array.min() > 0.0 and array.max() < np.inf):
        raise ValueError(
            f"test_weight lies in [{array.min()}, {array.max()}]; needed: finite numbers above 0"
        )
    return array


def _per_node(values: Floats, judged: Array, name: str) -> Floats:
    if values.ndim == 1 and len(values) != len(judged):
        raise ValueError(f"{name} has {len(values)} values for {len(judged)} nodes; needed: 1 each")
    return values[:, None] if values.ndim == 1 and judged.ndim == 2 else values
