"""Weights of calibration nodes: one rule per kind of exchangeability, and drift on top.

NodeEx: nodes arrive in an exchangeable order, every weight is 1.
EdgeEx: edges do, so a node is present in proportion to its degree; 1 / degree corrects for it.
Drift (Barber et al. 2023): older nodes count for less. Any weights in [0, 1] that are fixed before
a score is seen are allowed; they multiply NodeEx or EdgeEx, and the guarantee then loses what
``ringfence.models.guarantee.law.coverage_loss`` bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import Array, as_floats, like


def node_weights(n: int) -> Array:
    """Library only: the NodeEx weights of n calibration nodes, all 1; jobs pass None.

    >>> node_weights(2)
    array([1., 1.])
    """
    return np.ones(n)


def edge_weights(degrees: Any) -> Array:
    """Return the EdgeEx weights 1 / deg(v | G_t), from degrees on the graph as it is now.

    Args:
        degrees: [n], each at least 1: under EdgeEx a node exists from its first edge on.

    Returns:
        float64 [n]. The same function gives the exact test weights of the nodes to evaluate.

    >>> edge_weights([1, 2, 4])
    array([1.  , 0.5 , 0.25])
    """
    given = as_floats(degrees, "degrees", (1,))
    if given.size and not (given.min() >= 1.0 and given.max() < np.inf):
        raise ValueError(
            f"degrees lie in [{given.min():g}, {given.max():g}]; needed: at least 1. Under EdgeEx "
            "a node exists from its first edge on: leave isolated nodes out until they have one"
        )
    return like(degrees, 1.0 / given)


def drift_weights(ages: Any, half_life: float) -> Array:
    """Return weights 2 ** (-age / half_life) in [0, 1], for Barber et al.'s nonexchangeable rule.

    Args:
        ages: how long ago each calibration node came, at least 0, in the unit of half_life [n].
        half_life: the age at which a node counts half; choose it before looking at scores.

    Returns:
        float64 [n].

    >>> drift_weights([0.0, 30.0, 60.0], half_life=30.0)
    array([1.  , 0.5 , 0.25])
    """
    given = as_floats(ages, "ages", (1,))
    if not half_life > 0.0:
        raise ValueError(f"half_life = {half_life}; needed: a number above 0")
    if given.size and not (given.min() >= 0.0 and given.max() < np.inf):
        raise ValueError(
            f"ages lie in [{given.min():g}, {given.max():g}]; needed: at least 0. "
            "Measure them back from the time of the run"
        )
    return like(ages, np.exp2(-given / half_life))


def with_drift(weights: Any, drift: Any) -> Array:
    """Return weights times drift weights; the drift weights must lie in [0, 1].

    >>> with_drift([1.0, 0.5], [1.0, 0.5])
    array([1.  , 0.25])
    """
    base, factor = as_floats(weights, "weights", (1,)), as_floats(drift, "drift", (1,))
    if base.shape != factor.shape:
        raise ValueError(f"{len(base)} weights and {len(factor)} drift weights; needed: as many")
    if factor.size and not (factor.min() >= 0.0 and factor.max() <= 1.0):
        raise ValueError(f"drift weights lie in [{factor.min()}, {factor.max()}]; needed: [0, 1]")
    return like(weights, base * factor)
