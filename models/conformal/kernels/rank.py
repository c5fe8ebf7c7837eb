"""Compiled rank counts: how many of the sorted calibration scores are at most s, in O(1).

A straight line from score to bucket, evaluated the same way for calibration and test scores, is
monotone also in floating point: a calibration score in an earlier bucket is at most s, one in a
later bucket is above s, and only those in the same bucket need comparing. The count is therefore
exactly np.searchsorted's, for any scores; buckets with more than four are halved first.

The comparisons of the last four are added up rather than branched on, and run past the bucket's end
without harm, since later scores are larger: a mispredicted branch costs more than all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.arrays import Array, Floats
from ringfence.models.compile import compiled, inlined

PADDING_SCORES = 4  # +inf after the last score, for the comparisons that run past the end
NONE, ONE, FOUR = np.uint32(0), np.uint32(1), np.uint32(PADDING_SCORES)


@inlined
def bucket(score: float, low: float, scale: float, last: float) -> np.uint32:
    """Return the bucket of a score, 0..last; unsigned, so that indexing needs no sign check."""
    place = (score - low) * scale
    place = place if place < last else last
    place = place if place > 0.0 else 0.0
    return np.uint32(np.int64(place))


@compiled
def fill_starts(ordered: Floats, below: int, low: float, scale: float, starts: Array) -> None:
    """Write the number of scores before each bucket; the first ``below`` (-inf) are in none."""
    last, filled = np.float64(len(starts) - 2), 0
    for k in range(below, len(ordered) - PADDING_SCORES):
        current = bucket(ordered[k], low, scale, last)
        while filled <= current:
            starts[filled] = k
            filled += 1
    starts[filled:] = len(ordered) - PADDING_SCORES


@inlined
def count_in_buckets(
    score: float,
    ordered: Floats,
    low: float,
    scale: float,
    last: float,
    starts: Array,
    first_bucket: np.uint32,
) -> Any:
    """Return the place behind the last of the ordered scores that is at most the score.

    ``first_bucket`` is where the buckets of these scores begin in ``starts``.
    """
    current = first_bucket + bucket(score, low, scale, last)
    k, end = starts[current], starts[current + ONE]
    while end - k > FOUR:
        middle = (k + end) >> ONE
        if ordered[middle] <= score:
            k = middle + ONE
        else:
            end = middle
    first = k
    for j in range(PADDING_SCORES):
        k += np.uint32(ordered[first + np.uint32(j)] <= score)
    return k


@compiled
def count_each(
    scores: Floats, ordered: Floats, low: float, scale: float, starts: Array, counts: Array
) -> None:
    """Write the count of each score."""
    last = np.float64(len(starts) - 2)
    for i in range(len(scores)):
        counts[i] = count_in_buckets(scores[i], ordered, low, scale, last, starts, NONE)


@compiled
def look_up_each(
    scores: Floats,
    ordered: Floats,
    low: float,
    scale: float,
    starts: Array,
    table: Floats,
    values: Floats,
) -> None:
    """Write the table's entry at the count of each score; an empty table is (k + 1) / (n + 1)."""
    last, total = np.float64(len(starts) - 2), len(ordered) - PADDING_SCORES + 1.0
    for i in range(len(scores)):
        k = count_in_buckets(scores[i], ordered, low, scale, last, starts, NONE)
        values[i] = table[k] if len(table) else (k + 1.0) / total
