"""Library only: sets and p-values straight from probabilities, no scores in between.

For a million nodes the scores of all classes are 80 MB that nobody needs. These functions give, bit
by bit, what ``scores`` and ``conformal`` give in two steps.
"""

from __future__ import annotations

from typing import Any

from ringfence.models.arrays import (
    Array,
    as_limits,
    as_probabilities,
    as_scores,
    as_test_weights,
    as_uniforms,
    as_weights,
    like,
)
from ringfence.models.conformal import calibration_ranks
from ringfence.models.conformal.weighted import p_table
from ringfence.models.scores import adaptive


def aps_sets(
    probabilities: Any, u: Any, threshold: Any, penalty: float = 0.0, k_reg: int = 0
) -> Array:
    """Return ``prediction_sets(raps(probabilities, u, penalty, k_reg), threshold)``.

    Args:
        probabilities: [n, classes].
        u: one uniform number per node [n].
        threshold: a number, or one per node [n].
        penalty: of RAPS; 0 is APS.
        k_reg: of RAPS.

    Returns:
        bool [n, classes].

    >>> aps_sets([[0.5, 0.3, 0.2]], [0.5], threshold=-0.7)
    array([[ True,  True, False]])
    """
    given = as_probabilities(probabilities)
    uniform = as_uniforms(u, len(given))
    limits = as_limits(threshold, len(given)).reshape(-1)
    extra = adaptive.penalties(given.shape[1], penalty, k_reg)
    return like(probabilities, adaptive.sets_of_probabilities(given, uniform, extra, limits))


def aps_p_values(
    calibration_scores: Any,
    probabilities: Any,
    u: Any,
    weights: Any = None,
    test_weight: float = 1.0,
    penalty: float = 0.0,
    k_reg: int = 0,
) -> Array:
    """Return ``p_values(calibration_scores, raps(probabilities, u, ...), weights, test_weight)``.

    >>> aps_p_values([-0.2, -0.4, -0.6, -0.8], [[0.5, 0.3, 0.2]], [0.5])
    array([[0.8, 0.4, 0.2]])
    """
    known = as_scores(calibration_scores, "calibration scores", (1,))
    given = as_probabilities(probabilities)
    uniform = as_uniforms(u, len(given))
    extra = adaptive.penalties(given.shape[1], penalty, k_reg)
    own = float(as_test_weights(test_weight, (0,)))
    mass = None if weights is None else as_weights(weights, len(known))
    ordered, mass = calibration_ranks.order(known, mass)
    table = None if weights is None and own == 1.0 else p_table(mass, own)
    return like(
        probabilities, adaptive.p_values_of_probabilities(given, uniform, extra, ordered, table)
    )
