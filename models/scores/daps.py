"""DAPS, scores diffused over the graph (Zargarbashi et al. 2023), from all edges.

`node_scores` gives the same at some nodes of a graph, which is what a scoring run needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import Array, Floats, as_array, as_classes, as_scores, like
from ringfence.models.scores.aps import aps
from ringfence.models.scores.base import DIFFUSION_OPTIONS, ConformityScore

__all__ = ["DAPS", "daps", "daps_of_aps", "daps_of_aps_true"]


def daps(scores: Any, edge_index: Any, diffusion: float) -> Array:
    """Return diffused scores (1 - d) s(v) + d mean of s over the neighbours of v, per class.

    Neighbours of v are the sources of the edges that end in v (PyG's direction; an undirected
    graph lists both). A node without neighbours keeps its own score.

    Args:
        scores: [n, classes], e.g. from ``aps``.
        edge_index: [2, edges], node numbers.
        diffusion: d in [0, 1]; 0 gives the scores back.

    Returns:
        float64 [n, classes].

    >>> daps([[-0.2], [-0.4], [-0.6]], [[1, 2], [0, 0]], diffusion=0.5)
    array([[-0.35],
           [-0.4 ],
           [-0.6 ]])
    """
    node_scores = as_scores(scores, "scores", (2,))
    if not 0.0 <= diffusion <= 1.0:
        raise ValueError(f"diffusion = {diffusion}; needed: a number in [0, 1]")
    edges = as_array(edge_index).reshape(2, -1).astype(np.int64)
    if edges.size and not (edges.min() >= 0 and edges.max() < len(node_scores)):
        raise ValueError(f"edge_index names nodes outside 0 to {len(node_scores) - 1}")
    mixed = (1.0 - diffusion) * node_scores + diffusion * _neighbour_mean(node_scores, edges)
    alone = np.bincount(edges[1], minlength=len(node_scores)) == 0
    return like(scores, np.where(alone[:, None], node_scores, mixed))


def daps_of_aps(probabilities: Any, u: Any, edge_index: Any, diffusion: float) -> Array:
    """Return ``daps(aps(probabilities, u), edge_index, diffusion)`` of all nodes, [n, classes].

    >>> daps_of_aps([[0.5, 0.5], [0.2, 0.8]], [0.5, 0.5], [[1], [0]], diffusion=1.0)
    array([[-0.9, -0.4],
           [-0.9, -0.4]])
    """
    return daps(aps(probabilities, u), edge_index, diffusion)


def daps_of_aps_true(
    probabilities: Any, u: Any, classes: Any, edge_index: Any, diffusion: float
) -> Array:
    """Return ``daps_of_aps(...)[i, classes[i]]``, [n]: with neighbours' scores of that class."""
    scores = daps_of_aps(probabilities, u, edge_index, diffusion)
    chosen = as_classes(classes, *scores.shape)
    return scores[np.arange(len(scores)), chosen]


def _neighbour_mean(node_scores: Floats, edges: Array) -> Floats:
    """Sum in whole multiples of 2**-42 and 2**-84 of the largest score: exact, in any order."""
    from scipy.sparse import csr_array  # half a CPU second, which the other scores need not pay

    if not np.isfinite(node_scores).all():
        raise ValueError("scores hold -inf, whose mean with others is no score; needed: numbers")
    ones = np.ones(edges.shape[1], dtype=np.int64)
    adjacency = csr_array((ones, (edges[1], edges[0])), shape=(len(node_scores), len(node_scores)))
    unit = 2.0 ** (int(np.frexp(np.abs(node_scores).max(initial=0.0))[1]) - 42)
    coarse = np.floor(node_scores / unit)
    fine = np.rint((node_scores - coarse * unit) / unit * 2.0**42)
    whole, rest = (adjacency @ part.astype(np.int64) for part in (coarse, fine))
    degree = np.maximum(adjacency.sum(axis=1), 1)[:, None]
    return np.asarray((whole + rest * 2.0**-42) * unit / degree)


DAPS = ConformityScore(
    "DAPS",
    daps_of_aps,
    daps_of_aps_true,
    DIFFUSION_OPTIONS,
    needs_edges=True,
    base="APS",
    randomised=True,
)
