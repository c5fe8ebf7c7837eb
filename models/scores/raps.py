"""RAPS, APS with a penalty on low ranks (Angelopoulos et al. 2021).

APS is this score without a penalty.
"""

from __future__ import annotations

from typing import Any

from ringfence.models.arrays import Array, Floats, as_classes, as_probabilities, as_uniforms, like
from ringfence.models.scores import adaptive
from ringfence.models.scores.base import ConformityScore

__all__ = ["RAPS", "fill_raps", "raps", "raps_true"]


def raps(probabilities: Any, u: Any, penalty: float, k_reg: int) -> Array:
    """Return regularised scores s = -(rho_y + u pi_y + penalty max(0, o_y - k_reg)).

    o_y = 1 + number of classes strictly more likely than y.

    Args:
        probabilities: [n, classes].
        u: one uniform number per node [n].
        penalty: added for each rank beyond k_reg, at least 0.
        k_reg: ranks that cost nothing.

    Returns:
        float64 [n, classes].

    >>> raps([[0.5, 0.3, 0.2]], [0.5], penalty=0.1, k_reg=1)
    array([[-0.25, -0.75, -1.1 ]])
    """
    given = as_probabilities(probabilities)
    extra = adaptive.penalties(given.shape[1], penalty, k_reg)
    return like(probabilities, adaptive.all_scores(given, as_uniforms(u, len(given)), extra))


def raps_true(probabilities: Any, u: Any, classes: Any, penalty: float, k_reg: int) -> Array:
    """Return the RAPS score of one class per node: ``raps(...)[i, classes[i]]``, [n].

    >>> raps_true([[0.5, 0.3, 0.2]], [0.5], [1], penalty=0.1, k_reg=1)
    array([-0.75])
    """
    given = as_probabilities(probabilities)
    extra = adaptive.penalties(given.shape[1], penalty, k_reg)
    chosen = as_classes(classes, len(given), given.shape[1])
    scores = adaptive.true_scores(given, as_uniforms(u, len(given)), extra, chosen)
    return like(probabilities, scores)


def fill_raps(probabilities: Floats, u: Floats, scores: Floats, penalty: float, k_reg: int) -> None:
    """Write the RAPS scores of a block of rows, float64 [n, classes]."""
    extra = adaptive.penalties(probabilities.shape[1], penalty, k_reg)
    adaptive.fill_scores(probabilities, u, extra, scores)


RAPS = ConformityScore(
    "RAPS",
    raps,
    raps_true,
    ("penalty", "k_reg"),
    fill=fill_raps,
    randomised=True,
    safe_without_bands=True,
)
