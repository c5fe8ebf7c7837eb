"""DTPS, diffused TPS: the class's probability, averaged with the neighbours' as DAPS does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import Array, as_array, as_classes
from ringfence.models.scores.base import DIFFUSION_OPTIONS, ConformityScore
from ringfence.models.scores.daps import daps
from ringfence.models.scores.tps import tps

__all__ = ["DTPS", "dtps", "dtps_true"]


def dtps(probabilities: Any, u: Any, edge_index: Any, diffusion: float) -> Array:
    """Return ``daps(tps(probabilities), edge_index, diffusion)`` of all nodes, [n, classes].

    u is accepted and ignored, as by TPS.

    >>> dtps([[0.5, 0.5], [0.2, 0.8]], [0.5, 0.5], [[1], [0]], diffusion=1.0)
    array([[0.2, 0.8],
           [0.2, 0.8]])
    """
    return daps(tps(probabilities), edge_index, diffusion)


def dtps_true(probabilities: Any, u: Any, classes: Any, edge_index: Any, diffusion: float) -> Array:
    """Return ``dtps(...)[i, classes[i]]``, [n]: with the neighbours' probability of that class."""
    scores = dtps(probabilities, u, edge_index, diffusion)
    chosen = as_classes(classes, *as_array(scores).shape)
    return scores[np.arange(len(chosen)), chosen]


DTPS = ConformityScore("DTPS", dtps, dtps_true, DIFFUSION_OPTIONS, needs_edges=True, base="TPS")
