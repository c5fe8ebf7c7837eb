"""Edges of a degree-corrected stochastic block model (Karrer and Newman 2011), at any size.

A million nodes with ten million edges take seconds: pairs are drawn in blocks from cumulative
weights, and kept as one sorted array of 64-bit keys.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_BLOCK_PAIRS = 1 << 18  # pairs per block: scratch memory stays small at any size
_MAX_ROUNDS = 32  # rounds of replacing loops and parallels; each leaves a small share of the last


def degree_weights(rng: np.random.Generator, nodes: int, mean_degree: float, tail: float) -> Floats:
    """Expected degrees [n] up to a factor: P(degree > x) ~ x^(1 - tail), cut at a hub.

    The cut is half of where two hubs of the same size would be joined for certain.

    >>> degree_weights(np.random.default_rng(1), 4, mean_degree=2.0, tail=3.0).round(2).tolist()
    [1.43, 2.85, 1.08, 2.85]
    """
    weights: Floats = (1.0 - rng.random(nodes)) ** (-1.0 / (tail - 1.0))
    hub = weights.mean() * max(1.0, 0.5 * np.sqrt(nodes / mean_degree))
    weights[weights > hub] = hub
    return weights


def draw_edges(
    rng: np.random.Generator, y: Ints, weights: Floats, wanted: int, homophily: float
) -> Ints:
    """Distinct pairs, int64 [2, E], each as (smaller, larger); y [n] classes, weights [n].

    Loops and parallels are drawn again until none are left (or, in a graph that is nearly full,
    until the rounds are used up). Each round draws exactly what is missing, so no pair is ever
    thrown away for being one too many, which would favour some nodes.

    >>> y = np.array([0, 0, 0, 1, 1, 1])
    >>> draw_edges(np.random.default_rng(2), y, np.ones(6), wanted=4, homophily=1.0).tolist()
    [[0, 1, 3, 3], [1, 2, 4, 5]]
    """
    n = len(y)
    by_class = np.argsort(y, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weights[by_class])])
    bounds = total[np.searchsorted(y[by_class], np.arange(y.max() + 2))]
    keys = np.empty(0, dtype=np.int64)
    for _ in range(_MAX_ROUNDS):
        missing = wanted - len(keys)
        if missing == 0:
            break
        drawn = [keys]
        for at in range(0, missing, _BLOCK_PAIRS):
            u, v = _draw_pairs(
                rng, min(_BLOCK_PAIRS, missing - at), by_class, total, bounds, homophily
            )
            low, high = np.minimum(u, v), np.maximum(u, v)
            drawn.append((low * n + high)[low != high])
        keys = np.concatenate(drawn)
        del drawn
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) != 0]
    edges = np.empty((2, len(keys)), dtype=np.int64)
    np.divmod(keys, n, out=(edges[0], edges[1]))
    return edges


def _draw_pairs(
    rng: np.random.Generator,
    size: int,
    by_class: Ints,
    total: Floats,
    bounds: Floats,
    homophily: float,
) -> tuple[Ints, Ints]:
    """One end by weight; the other by weight inside its class, or by weight outside it."""
    whole = total[-1]
    at = rng.random(size) * whole
    block = np.searchsorted(bounds, at, side="right") - 1
    low, high = bounds[block], bounds[block + 1]
    r = rng.random(size)
    inside = low + r * (high - low)
    outside = (high + r * (whole - (high - low))) % whole
    other = np.where(rng.random(size) < homophily, inside, outside)
    last = len(by_class) - 1
    ends = [np.searchsorted(total, p, side="right") - 1 for p in (at, other)]
    return by_class[np.clip(ends[0], 0, last)], by_class[np.clip(ends[1], 0, last)]
