"""Neighbours by channel, and their sums: kept from pass to pass where the list only grew."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import released
from ringfence.models.inference.kernels.project import project

Array = Any

HASH_FACTOR = np.uint64(0x9E3779B185EBCA87)
NOT_KEPT = -1


@released
def multiply_rows(
    start: int, stop: int, places: Array, values: Array, weights: Array, out: Array
) -> None:
    """out_r = values at places_r . weights."""
    for r in range(start, stop):
        project(values[places[r]], weights, out[r])


@released
def mean_rows(
    start: int, stop: int, offsets: Array, sources: Array, places: Array, values: Array, out: Array
) -> None:
    """out_r = mean of values at the places of r's sources, summed in float64 in their order."""
    width = values.shape[1]
    total = np.empty(width, np.float64)
    for r in range(start, stop):
        total[:] = 0.0
        for e in range(offsets[r], offsets[r + 1]):
            j = places[sources[e]]
            for c in range(width):
                total[c] += values[j, c]
        count = max(offsets[r + 1] - offsets[r], 1)
        for c in range(width):
            out[r, c] = total[c] / count


@released
def mean_kept_rows(
    start: int, stop: int, offsets: Array, sources: Array, places: Array, values: Array,
    least: Array, slots: Array, counts: Array, hashes: Array, sums: Array, out: Array,
    heard: Array, gathered: Array,
) -> None:  # fmt: skip
    """As `mean_rows`, going on from the sum in a row's slot where its list begins as it was then.

    A slot holds the sum over the first ``counts`` sources and a hash of their numbers. Sums run in
    the order of the list, so going on adds the same numbers in the same order as beginning anew.
    Where ``least`` is above 0 the beginning is known to be the same, and only what follows it is
    listed; else the whole list is, and its beginning is compared by the hash. ``heard``: how many
    sources a row has in all.
    """
    width = values.shape[1]
    total = np.empty(width, np.float64)
    for r in range(start, stop):
        first, end, slot = offsets[r], offsets[r + 1], slots[r]
        total[:] = 0.0
        at, before, mark, goes_on = first, 0, np.uint64(0), False
        if least[r] > 0:
            before, mark, goes_on = counts[slot], hashes[slot], True
        elif slot != NOT_KEPT and 0 <= counts[slot] <= end - first:
            for e in range(first, first + counts[slot]):
                mark = mark * HASH_FACTOR + np.uint64(sources[e] + 1)
            goes_on = mark == hashes[slot]
            if goes_on:
                at = first + counts[slot]
            else:
                mark = np.uint64(0)
        if goes_on:
            for c in range(width):
                total[c] = sums[slot, c]
        gathered[r] = end - at
        for e in range(at, end):
            j = places[sources[e]]
            for c in range(width):
                total[c] += values[j, c]
        heard[r] = before + end - first
        if slot != NOT_KEPT:
            for e in range(at, end):
                mark = mark * HASH_FACTOR + np.uint64(sources[e] + 1)
            counts[slot], hashes[slot] = heard[r], mark
            for c in range(width):
                sums[slot, c] = total[c]
        count = max(heard[r], 1)
        for c in range(width):
            out[r, c] = total[c] / count
