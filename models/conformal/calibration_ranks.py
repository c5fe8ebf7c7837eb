"""Ranks of scores among calibration scores: numpy for small inputs, compiled for large ones.

Loading the compiler costs about a second per process, more than numpy needs for a hundred
thousand scores. Both ways count the same integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringfence.models.arrays import Array, Floats

#: Up to so many scores numpy is faster than loading the compiler.
MAX_SCORES_FOR_NUMPY = 200_000

#: Four buckets per score, which keep apart scores that lie close, as long as they fit near caches.
MAX_WIDE_BUCKETS = 2**15


@dataclass(frozen=True, slots=True)
class Lookup:
    """Sorted scores (padded with +inf) and the buckets that lead into them."""

    ordered: Floats
    low: float
    scale: float
    starts: Array


def order(known: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the scores in ascending order [n], and the weights in the order of their scores [n].

    >>> [part.tolist() for part in order(np.array([0.3, 0.1]), np.array([1.0, 0.5]))]
    [[0.1, 0.3], [0.5, 1.0]]
    """
    if weights is None:
        return np.sort(known), np.ones(len(known))
    by_score = np.argsort(known, kind="stable")
    return known[by_score], weights[by_score]


def count_at_most(ordered: Floats, scores: Floats) -> Array:
    """Return, for each score, the number of ordered scores that are at most that score.

    >>> count_at_most(np.array([0.1, 0.2, 0.2]), np.array([0.2, 0.05])).tolist()
    [3, 0]
    """
    lookup = None if scores.size <= MAX_SCORES_FOR_NUMPY else make_lookup(ordered)
    if lookup is None:
        return np.searchsorted(ordered, scores, side="right")
    from ringfence.models.conformal.kernels.rank import count_each

    counts = np.empty(scores.size, dtype=np.uint32)
    flat = np.ascontiguousarray(scores).reshape(-1)
    count_each(flat, lookup.ordered, lookup.low, lookup.scale, lookup.starts, counts)
    return counts.reshape(scores.shape)


def p_of_counts(ordered: Floats, scores: Floats, table: Floats | None) -> Floats:
    """Return the p-value at each score's count: the table's, or (k + 1) / (n + 1).

    >>> p_of_counts(np.array([0.1, 0.2, 0.3]), np.array([0.25]), table=None).tolist()
    [0.75]
    """
    lookup = None if scores.size <= MAX_SCORES_FOR_NUMPY else make_lookup(ordered)
    if lookup is None:
        counts = np.searchsorted(ordered, scores, side="right")
        return (counts + 1) / (len(ordered) + 1) if table is None else table[counts]
    from ringfence.models.conformal.kernels.rank import look_up_each

    p_values = np.empty(scores.size)
    flat = np.ascontiguousarray(scores).reshape(-1)
    entries = np.empty(0) if table is None else table
    look_up_each(flat, lookup.ordered, lookup.low, lookup.scale, lookup.starts, entries, p_values)
    return p_values.reshape(scores.shape)


def make_lookup(ordered: Floats) -> Lookup | None:
    """Return the buckets of sorted scores, or None if no straight line separates them."""
    from ringfence.models.conformal.kernels.rank import PADDING_SCORES, fill_starts

    below = int(np.searchsorted(ordered, -np.inf, side="right"))
    buckets = max(1, 2 * len(ordered) // 3, min(4 * len(ordered), MAX_WIDE_BUCKETS))
    width = float(ordered[-1]) - float(ordered[below]) if below < len(ordered) else 0.0
    if not (0.0 < width < np.inf and buckets / width < np.inf):
        return None
    padded = np.concatenate((ordered, np.full(PADDING_SCORES, np.inf)))
    lookup = Lookup(
        padded, float(ordered[below]), buckets / width, np.empty(buckets + 1, dtype=np.uint32)
    )
    fill_starts(padded, below, lookup.low, lookup.scale, lookup.starts)
    return lookup


def one_bucket(ordered: Floats) -> Lookup:
    """Return one bucket that holds all sorted scores, whatever they are."""
    from ringfence.models.conformal.kernels.rank import PADDING_SCORES

    padded = np.concatenate((ordered, np.full(PADDING_SCORES, np.inf)))
    return Lookup(padded, 0.0, 0.0, np.array([0, len(ordered)], np.uint32))
