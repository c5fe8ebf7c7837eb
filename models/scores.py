"""Conformity scores: how well a class agrees with what the network says of a node.

Higher agrees more, everywhere. All arithmetic is float64: in float32 an overconfident network ties
most of its scores at -1, and nearly every set changes.

A score may only depend on a node's probabilities and its u, and not on how classes or nodes are
numbered: classes with equal probabilities get equal scores, and sums run over sorted values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from ringfence.models import _adaptive
from ringfence.models._arrays import (
    Array,
    Floats,
    as_array,
    as_classes,
    as_probabilities,
    as_scores,
    as_uniforms,
    check_probabilities,
    like,
)


def softmax64(logits: Any) -> torch.Tensor:
    """Return the softmax over classes in float64, [n, classes].

    >>> softmax64([[0.0, 0.0]])
    tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    given = logits if isinstance(logits, torch.Tensor) else torch.as_tensor(as_array(logits))
    return torch.softmax(given.detach(), dim=-1, dtype=torch.float64)


def tps(probabilities: Any) -> torch.Tensor:
    """Return threshold scores s = pi_y (Sadinle et al. 2019).

    >>> tps([[0.7, 0.3]])
    tensor([[0.7000, 0.3000]], dtype=torch.float64)
    """
    given = as_probabilities(probabilities)
    check_probabilities(given)
    return like(probabilities, given.astype(np.float64))


def aps(probabilities: Any, u: Any) -> torch.Tensor:
    """Return adaptive scores s = -(rho_y + u pi_y) (Romano et al. 2020).

    rho_y is the total probability of the classes strictly more likely than y.

    Args:
        probabilities: [n, classes].
        u: one uniform number per node [n]; see ringfence.models.keyed.

    Returns:
        float64 [n, classes].

    >>> aps([[0.5, 0.3, 0.2]], [0.5])
    tensor([[-0.2500, -0.6500, -0.9000]], dtype=torch.float64)
    """
    return raps(probabilities, u, penalty=0.0, k_reg=0)


def raps(probabilities: Any, u: Any, penalty: float, k_reg: int) -> torch.Tensor:
    """Return regularised scores s = -(rho_y + u pi_y + penalty max(0, o_y - k_reg)).

    o_y = 1 + number of classes strictly more likely than y (Angelopoulos et al. 2021).

    Args:
        probabilities: [n, classes].
        u: one uniform number per node [n].
        penalty: added for each rank beyond k_reg, at least 0.
        k_reg: ranks that cost nothing.

    Returns:
        float64 [n, classes].

    >>> raps([[0.5, 0.3, 0.2]], [0.5], penalty=0.1, k_reg=1)
    tensor([[-0.2500, -0.7500, -1.1000]], dtype=torch.float64)
    """
    given = as_probabilities(probabilities)
    extra = _adaptive.penalties(given.shape[1], penalty, k_reg)
    return like(probabilities, _adaptive.all_scores(given, as_uniforms(u, len(given)), extra))


def tps_true(probabilities: Any, classes: Any) -> torch.Tensor:
    """Return the TPS score of one class per node: ``tps(probabilities)[i, classes[i]]``, [n]."""
    given = as_probabilities(probabilities)
    check_probabilities(given)
    chosen = as_classes(classes, len(given), given.shape[1])
    return like(
        probabilities, np.take_along_axis(given, chosen[:, None], axis=1)[:, 0].astype(np.float64)
    )


def aps_true(probabilities: Any, u: Any, classes: Any) -> torch.Tensor:
    """Return the APS score of one class per node: ``aps(probabilities, u)[i, classes[i]]``, [n].

    Calibration needs the true class alone; this scores no other.

    >>> aps_true([[0.5, 0.3, 0.2]], [0.5], [1])
    tensor([-0.6500], dtype=torch.float64)
    """
    return raps_true(probabilities, u, classes, penalty=0.0, k_reg=0)


def raps_true(probabilities: Any, u: Any, classes: Any, penalty: float, k_reg: int) -> torch.Tensor:
    """Return the RAPS score of one class per node: ``raps(...)[i, classes[i]]``, [n]."""
    given = as_probabilities(probabilities)
    extra = _adaptive.penalties(given.shape[1], penalty, k_reg)
    chosen = as_classes(classes, len(given), given.shape[1])
    found = _adaptive.true_scores(given, as_uniforms(u, len(given)), extra, chosen)
    return like(probabilities, found)


def daps(scores: Any, edge_index: Any, diffusion: float) -> torch.Tensor:
    """Return diffused scores (1 - d) s(v) + d mean of s over the neighbours of v, per class.

    Zargarbashi et al. 2023. Neighbours of v are the sources of the edges that end in v (PyG's
    direction; an undirected graph lists both). A node without neighbours keeps its own score.

    Args:
        scores: [n, classes], e.g. from ``aps``.
        edge_index: [2, edges], node numbers.
        diffusion: d in [0, 1]; 0 gives the scores back.

    Returns:
        float64 [n, classes].

    >>> daps([[-0.2], [-0.4], [-0.6]], [[1, 2], [0, 0]], diffusion=0.5)
    tensor([[-0.3500],
            [-0.4000],
            [-0.6000]], dtype=torch.float64)
    """
    own = as_scores(scores, "scores", (2,))
    if not 0.0 <= diffusion <= 1.0:
        raise ValueError(f"diffusion = {diffusion}; needed: a number in [0, 1]")
    edges = as_array(edge_index).reshape(2, -1).astype(np.int64)
    if edges.size and not (edges.min() >= 0 and edges.max() < len(own)):
        raise ValueError(f"edge_index names nodes outside 0 to {len(own) - 1}")
    mixed = (1.0 - diffusion) * own + diffusion * _neighbour_mean(own, edges)
    alone = np.bincount(edges[1], minlength=len(own)) == 0
    return like(scores, np.where(alone[:, None], own, mixed))


def _neighbour_mean(own: Floats, edges: Array) -> Floats:
    """Sum in whole multiples of 2**-42 and 2**-84 of the largest score: no order, no rounding."""
    if not np.isfinite(own).all():
        raise ValueError("scores hold -inf, whose mean with others is no score; needed: numbers")
    ones = np.ones(edges.shape[1], dtype=np.int64)
    adjacency = csr_array((ones, (edges[1], edges[0])), shape=(len(own), len(own)))
    unit = 2.0 ** (int(np.frexp(np.abs(own).max(initial=0.0))[1]) - 42)
    coarse = np.floor(own / unit)
    fine = np.rint((own - coarse * unit) / unit * 2.0**42)
    whole, rest = (adjacency @ part.astype(np.int64) for part in (coarse, fine))
    degree = np.maximum(adjacency.sum(axis=1), 1)[:, None]
    return np.asarray((whole + rest * 2.0**-42) * unit / degree)
