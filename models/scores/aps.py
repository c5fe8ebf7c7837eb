"""APS, adaptive prediction sets: the mass of the likelier classes (Romano et al. 2020)."""

from __future__ import annotations

from typing import Any

from ringfence.models.arrays import Array, Floats
from ringfence.models.scores.base import ConformityScore
from ringfence.models.scores.raps import fill_raps, raps, raps_true

__all__ = ["APS", "aps", "aps_true", "fill_aps"]


def aps(probabilities: Any, u: Any) -> Array:
    """Return adaptive scores s = -(rho_y + u pi_y): RAPS without a penalty.

    rho_y is the total probability of the classes strictly more likely than y.

    Args:
        probabilities: [n, classes].
        u: one uniform number per node [n]; see ringfence.models.hashing.

    Returns:
        float64 [n, classes].

    >>> aps([[0.5, 0.3, 0.2]], [0.5])
    array([[-0.25, -0.65, -0.9 ]])
    """
    return raps(probabilities, u, penalty=0.0, k_reg=0)


def aps_true(probabilities: Any, u: Any, classes: Any) -> Array:
    """Return the APS score of one class per node: ``aps(probabilities, u)[i, classes[i]]``, [n].

    Calibration needs the true class alone; this scores no other.

    >>> aps_true([[0.5, 0.3, 0.2]], [0.5], [1])
    array([-0.65])
    """
    return raps_true(probabilities, u, classes, penalty=0.0, k_reg=0)


def fill_aps(probabilities: Floats, u: Floats, scores: Floats) -> None:
    """Write the APS scores of a block of rows, float64 [n, classes]."""
    fill_raps(probabilities, u, scores, penalty=0.0, k_reg=0)


APS = ConformityScore("APS", aps, aps_true, fill=fill_aps, randomised=True, safe_without_bands=True)
