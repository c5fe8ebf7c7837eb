"""Means of the neighbours' scores, compiled; sums of whole numbers are exact in any order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import released

Array = Any

#: A score is a whole number of units, and the rest a whole number of units times 2^-34. Sums of
#: 2^28 of either, the most nodes that a mirror holds, fit into 63 bits.
DIGITS = 34
FINE = 2.0**-DIGITS


@released
def diffuse(
    start: int, stop: int, scores: Array, places: Array, offsets: Array, neighbours: Array,
    diffusion: float, unit: float, out: Array,
) -> None:  # fmt: skip
    """out_i = (1 - d) s_i + d mean of s_j over the neighbours j; s_i where there are none.

    ``unit`` is a power of two: to multiply by 1 / unit is to divide by it.
    """
    width, units_per_one = scores.shape[1], 1.0 / unit
    whole, rest = np.empty(width, np.int64), np.empty(width, np.int64)
    for i in range(start, stop):
        node_scores = scores[places[i]]
        count = offsets[i + 1] - offsets[i]
        if count == 0:
            out[i] = node_scores
            continue
        whole[:] = 0
        rest[:] = 0
        for e in range(offsets[i], offsets[i + 1]):
            row = scores[neighbours[e]]
            for c in range(width):
                units = row[c] * units_per_one
                floor = np.floor(units)
                whole[c] += np.int64(floor)
                rest[c] += np.int64(np.rint((units - floor) / FINE))
        for c in range(width):
            mean = (np.float64(whole[c]) + np.float64(rest[c]) * FINE) * unit / count
            out[i, c] = (1.0 - diffusion) * node_scores[c] + diffusion * mean
