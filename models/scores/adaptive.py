"""APS and RAPS on arrays: numpy for small inputs, compiled for large ones, the same bits.

cost(y) = rho_y + u pi_y + penalty max(0, o_y - k_reg), the negative of the score. rho_y is the
running sum, from the largest down, of the probabilities above pi_y; o_y is one more than their
number. Both depend on the values alone, so renumbering the classes changes no bit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ringfence.models.arrays import Array, Floats, check_probabilities, refuse_probabilities
from ringfence.models.conformal import calibration_ranks


def penalties(classes: int, penalty: float, k_reg: int) -> Floats:
    """Return the penalty of each rank 1..classes, float64 [classes].

    >>> penalties(4, penalty=0.5, k_reg=2).tolist()
    [0.0, 0.0, 0.5, 1.0]
    """
    if not (0.0 <= penalty < np.inf and k_reg >= 0):
        raise ValueError(f"penalty = {penalty}, k_reg = {k_reg}; needed: numbers of at least 0")
    return penalty * np.maximum(0, np.arange(1, classes + 1) - k_reg)


def all_scores(given: Array, u: Floats, extra: Floats) -> Floats:
    """Return the scores of all classes, float64 [n, classes]."""
    if given.size <= calibration_ranks.MAX_SCORES_FOR_NUMPY:
        check_probabilities(given)
        return -_costs(given, u, extra)
    scores = np.empty(given.shape)
    fill_scores(given, u, extra, scores)
    return scores


def fill_scores(given: Array, u: Floats, extra: Floats, scores: Floats) -> None:
    """Write the scores of all classes [n, classes] by the compiled loops, whatever the size."""
    from ringfence.models.scores.kernels.adaptive import adaptive_scores

    if adaptive_scores(given, u, extra, *_blocks(given), scores):
        refuse_probabilities(given)


def true_scores(given: Array, u: Floats, extra: Floats, chosen: Array) -> Floats:
    """Return the score of one class per node, float64 [n]."""
    if given.size <= calibration_ranks.MAX_SCORES_FOR_NUMPY:
        return np.take_along_axis(all_scores(given, u, extra), chosen[:, None], axis=1)[:, 0]
    from ringfence.models.scores.kernels.adaptive import adaptive_true

    scores = np.empty(len(given))
    if adaptive_true(given, u, chosen, extra, *_blocks(given), scores):
        refuse_probabilities(given)
    return scores


def _costs(given: Array, u: Floats, extra: Floats) -> Floats:
    order = np.argsort(-given, axis=1, kind="stable")
    values = np.take_along_axis(given, order, axis=1).astype(np.float64)
    rho = np.zeros_like(values)
    rho[:, 1:] = np.cumsum(values, axis=1)[:, :-1]
    first = np.zeros(values.shape, dtype=np.int64)  # where the run of equal values begins
    first[:, 1:] = np.where(values[:, 1:] < values[:, :-1], np.arange(1, values.shape[1]), 0)
    first = np.maximum.accumulate(first, axis=1)
    ordered = np.take_along_axis(rho, first, axis=1) + u[:, None] * values + extra[first]
    costs = np.empty_like(ordered)
    np.put_along_axis(costs, order, ordered, axis=1)
    return costs


def _blocks(given: Array) -> tuple[Array, int]:
    """Return the sorting network, and how many rows make a block that stays in near caches."""
    classes = given.shape[1]
    return network(classes), int(np.clip(8192 // classes, 16, 512))


@lru_cache(maxsize=64)
def network(classes: int) -> Array:
    """Return Batcher's merge exchange (Knuth, 5.2.2, algorithm M): pairs to compare, in order.

    >>> network(3).tolist()
    [[0, 2], [0, 1], [1, 2]]
    """
    pairs: list[tuple[int, int]] = []
    top = 1 << max(0, (classes - 1).bit_length() - 1)
    p = top if classes > 1 else 0
    while p > 0:
        q, r, distance = top, 0, p
        while distance > 0:
            pairs += [(i, i + distance) for i in range(classes - distance) if i & p == r]
            distance, q, r = q - p, q >> 1, p
        p >>= 1
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
