"""Thresholds of many calibration sets at once: one per step of a growing graph.

``conformal.threshold`` is the definition, and each result here is its result, to the bit. What is
saved is the overhead of tens of thousands of calls, and the exact integers where doubles decide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.rank import rank, read_alpha
from ringfence.models.conformal.sets import threshold

__all__ = ["row_thresholds"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def row_thresholds(
    scores: Floats,
    alpha: float,
    weights: Floats | None = None,
    rows: Ints | None = None,
    test_weights: Floats | None = None,
) -> Floats:
    """``threshold(scores[r], alpha, weights[r], test_weights[i])`` for each r = rows[i].

    Args:
        scores: calibration scores of the true classes [steps, n], a row per calibration set.
        alpha: share of nodes that may be missed.
        weights: [steps, n], or None for NodeEx.
        rows: which row each answer is for [k], not falling; None takes every row once.
        test_weights: weight of each evaluated node [k]; None is 1.

    Returns:
        float64 [k]; -inf where the calibration set is too small.

    >>> row_thresholds(np.array([[0.3, 0.1, 0.2], [0.6, 0.5, 0.4]]), alpha=0.5).tolist()
    [0.2, 0.5]
    """
    share = read_alpha(alpha)
    if weights is None:
        if test_weights is not None:
            raise ValueError("test weights without calibration weights; needed: both or none")
        each = _unweighted(scores, share)
        return each if rows is None else each[rows]
    asked = np.arange(len(scores), dtype=np.int64) if rows is None else rows
    row_weights = np.ones(len(asked)) if test_weights is None else test_weights
    if np.any(np.diff(asked) < 0):
        raise ValueError("rows go back and forth; needed: sorted, as steps of time are")
    return _weighted(scores, weights, asked, row_weights, share)


def _unweighted(scores: Floats, alpha: float) -> Floats:
    n = scores.shape[1]
    place = rank(n, alpha)
    if not 0 < place <= n:
        return np.full(len(scores), -np.inf if place == 0 else np.inf)
    return np.asarray(np.partition(scores, place - 1, axis=1)[:, place - 1])


def _weighted(
    scores: Floats, weights: Floats, rows: Ints, row_weights: Floats, alpha: float
) -> Floats:
    from ringfence.models.conformal.kernels.thresholds import weighted_thresholds

    thresholds, unsure = np.empty(len(rows)), np.zeros(len(rows), dtype=np.bool_)
    weighted_thresholds(scores, weights, rows, row_weights, alpha, thresholds, unsure)
    for i in np.flatnonzero(unsure):
        thresholds[i] = threshold(scores[rows[i]], alpha, weights[rows[i]], row_weights[i])
    return thresholds
