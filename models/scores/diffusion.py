"""Neighbour diffusion of scores (DAPS) at some nodes, without all edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.row_shares import share_rows
from ringfence.models.scores.kernels.diffusion import DIGITS, diffuse

__all__ = ["diffuse_scores"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def diffuse_scores(
    scores: Any,
    places: Ints,
    offsets: Ints,
    neighbours: Ints,
    diffusion: float,
    workers: int = 1,
) -> Floats:
    """Return (1 - d) s(v) + d mean of s over the neighbours of v, at the wanted nodes.

    A node without neighbours keeps its own scores. Sums run over whole numbers: neither the order
    nor the number of nodes changes a bit, as long as scores stay within -2 to 2 (APS, TPS) or
    below the same power of two.

    Args:
        scores: [k, classes], numbers.
        places: int64 [m], the wanted nodes' rows of ``scores``.
        offsets: int64 [m + 1]. neighbours: int64, rows of ``scores``: those of wanted node i are
            ``neighbours[offsets[i] : offsets[i + 1]]`` (see `models.inference.neighbourhood`).
        diffusion: d in [0, 1]; 0 gives the scores back.
        workers: threads that share the wanted nodes.

    >>> rows = [np.array(row, np.int64) for row in ([0, 2], [0, 2, 2], [1, 2])]
    >>> diffuse_scores([[-0.2], [-0.4], [-0.6]], *rows, diffusion=0.5).tolist()
    [[-0.35], [-0.6]]
    """
    node_scores = np.ascontiguousarray(scores, np.float64)
    largest = max(node_scores.max(initial=0.0), -node_scores.min(initial=0.0))  # NaN stays NaN
    if node_scores.ndim != 2 or not largest < np.inf:
        raise ValueError("scores must be finite numbers of shape [n, classes]")
    if not 0.0 <= diffusion <= 1.0:
        raise ValueError(f"diffusion = {diffusion}; needed: a number in [0, 1]")
    at, cuts, near = (
        np.ascontiguousarray(array, np.int64) for array in (places, offsets, neighbours)
    )
    _check_places(len(node_scores), at, cuts, near)
    unit = 2.0 ** (max(int(np.frexp(largest)[1]), 1) - DIGITS)
    out = np.empty((len(at), node_scores.shape[1]), np.float64)
    share_rows(
        len(at),
        workers,
        lambda start, stop: diffuse(
            start, stop, node_scores, at, cuts, near, float(diffusion), unit, out
        ),
    )
    return out


def _check_places(rows: int, places: Ints, offsets: Ints, neighbours: Ints) -> None:
    """Refuse what would make the compiled loop read outside its arrays."""
    for name, values in (("places", places), ("neighbours", neighbours)):
        if len(values) and not (values.min() >= 0 and values.max() < rows):
            raise ValueError(f"{name} name rows outside 0 to {rows - 1}")
    fits = len(offsets) == len(places) + 1 and offsets[0] == 0 and offsets[-1] == len(neighbours)
    if not (fits and (np.diff(offsets) >= 0).all()):
        raise ValueError("offsets don't cut the neighbours into one list per wanted node")
