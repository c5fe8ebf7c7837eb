"""Scores of the wanted nodes by a score's name, with neighbours for scores that need them.

near = neighbourhood(graph, wanted) if needs_neighbours("DAPS") else None
rows = wanted if near is None else near.rows
scores = node_scores("DAPS", softmax64(outputs_at(rows)), u_of(rows), {"diffusion": 0.5}, near)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.models.scores.diffusion import diffuse_scores
from ringfence.models.scores.registry import score_named

__all__ = ["Neighbours", "needs_neighbours", "node_scores", "require_neighbours"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Neighbours(Protocol):
    """Where wanted nodes and their neighbours stand: `models.inference.Neighbourhood`."""

    @property
    def places(self) -> Ints:
        """Places of the wanted nodes among the scored ones [m]."""

    @property
    def offsets(self) -> Ints:
        """Where each wanted node's neighbours begin [m + 1]."""

    @property
    def neighbours(self) -> Ints:
        """Places of the neighbours among the scored nodes."""


def needs_neighbours(name: str) -> bool:
    """Whether a score uses a node's neighbours.

    >>> needs_neighbours("APS"), needs_neighbours("DAPS")
    (False, True)
    """
    return score_named(name).needs_edges


def node_scores(
    name: str,
    probabilities: Any,
    u: Any,
    options: Mapping[str, Any],
    near: Neighbours | None = None,
) -> Floats:
    """Return the scores of all classes at the wanted nodes [m, classes].

    Args:
        name: of the score.
        probabilities: of the wanted nodes or, with `near`, of all nodes that it names [k, classes].
        u: one uniform number per row of `probabilities` [k].
        options: of the score: `diffusion`; `penalty` and `k_reg`.
        near: the wanted nodes and their neighbours, for a score that needs them.

    >>> node_scores("RAPS", [[0.5, 0.3, 0.2]], [0.5], {"penalty": 0.1, "k_reg": 1}).tolist()
    [[-0.25, -0.75, -1.1]]
    """
    score = score_named(name)
    if score.base is None:
        return np.asarray(score.all_classes(probabilities, u, **options))
    near = require_neighbours(name, near)
    base_scores = np.asarray(score_named(score.base).all_classes(probabilities, u))
    return diffuse_scores(
        base_scores, near.places, near.offsets, near.neighbours, options["diffusion"]
    )


def require_neighbours(name: str, near: Neighbours | None) -> Neighbours:
    """Return the neighbours; raise for a score that needs them and got none."""
    if near is None:
        raise ValueError(f"{name} mixes scores with those of neighbours; needed: the neighbours")
    return near
