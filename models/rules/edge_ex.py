"""EdgeEx of the paper: edges arrive in exchangeable order, nodes count by 1 / degree.

A node without a neighbour does not exist yet: it neither calibrates nor is it evaluated. Weights of
1 / degree are right for the ends of sampled edges; nodes that join the calibration as they are
labelled are sampled in another way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.strata import ALL_NODES, Stratum
from ringfence.models.conformal.weights import edge_weights, with_drift
from ringfence.models.rules.base import NodeDegrees, Promise, Rule

__all__ = ["EDGE_EX", "EdgeEx", "weigh_by_edges"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class EdgeEx(Rule):
    """All nodes with a neighbour, with the weight 1 / degree."""

    name = "EdgeEx"
    within = "by EdgeEx"
    assumes = "edge"
    needs_neighbours = True
    weighs_nodes = True
    allows_recent_labels = False
    allows_shift_weights = False

    def strata(
        self, promise: Promise, degrees: NodeDegrees, drift: Floats | None = None
    ) -> list[Stratum]:
        """Return a single stratum; due nodes have the weight 1, or their own where it is exact."""
        present, weights = weigh_by_edges(degrees.calibration, drift)
        test = np.asarray(edge_weights(degrees.due)) if promise.exact_test_weight else 1.0
        everybody = np.arange(len(degrees.due))
        return [Stratum(ALL_NODES, present, everybody, None, weights, test)]

    def calibration_weights(
        self, degrees: NodeDegrees, drift: Floats | None
    ) -> tuple[Floats | None, int]:
        """Return the weights of the calibration nodes that have a neighbour, and how many do."""
        present, weights = weigh_by_edges(degrees.calibration, drift)
        return weights, len(present)


def weigh_by_edges(degree: Ints, drift: Floats | None) -> tuple[Ints, Floats]:
    """Return the places of the nodes that have a neighbour, and their weights.

    >>> weigh_by_edges(np.array([0, 2, 1]), None)
    (array([1, 2]), array([0.5, 1. ]))
    """
    present = np.flatnonzero(degree > 0)
    weights = np.asarray(edge_weights(degree[present]))
    if drift is not None:
        weights = np.asarray(with_drift(weights, drift[present]))
    return present, weights


EDGE_EX = EdgeEx()
