"""TPS, threshold prediction sets: the score is the class's probability (Sadinle et al. 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import (
    Array,
    Floats,
    as_classes,
    as_probabilities,
    check_probabilities,
    like,
)
from ringfence.models.scores.base import ConformityScore

__all__ = ["TPS", "fill_tps", "tps", "tps_true", "tps_true_without_u", "tps_without_u"]


def tps(probabilities: Any) -> Array:
    """Return threshold scores s = pi_y, float64 [n, classes].

    >>> tps([[0.7, 0.3]])
    array([[0.7, 0.3]])
    """
    given = as_probabilities(probabilities)
    check_probabilities(given)
    return like(probabilities, given.astype(np.float64))


def tps_true(probabilities: Any, classes: Any) -> Array:
    """Return the TPS score of one class per node: ``tps(probabilities)[i, classes[i]]``, [n].

    >>> tps_true([[0.7, 0.3]], [1])
    array([0.3])
    """
    given = as_probabilities(probabilities)
    check_probabilities(given)
    chosen = as_classes(classes, len(given), given.shape[1])
    return like(
        probabilities, np.take_along_axis(given, chosen[:, None], axis=1)[:, 0].astype(np.float64)
    )


def tps_without_u(probabilities: Any, u: Any) -> Array:
    """Return ``tps(probabilities)``: the registry passes u to every score, and TPS ignores it."""
    return tps(probabilities)


def tps_true_without_u(probabilities: Any, u: Any, classes: Any) -> Array:
    """Return ``tps_true(probabilities, classes)``; u is ignored."""
    return tps_true(probabilities, classes)


def fill_tps(probabilities: Floats, u: Floats, scores: Floats) -> None:
    """Write the TPS scores of a block of rows, float64 [n, classes]; u is ignored."""
    check_probabilities(probabilities)
    scores[:] = probabilities


TPS = ConformityScore("TPS", tps_without_u, tps_true_without_u, fill=fill_tps)
