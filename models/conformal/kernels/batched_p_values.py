"""Compiled p-values and sets of due nodes in strata of any kind, in one read of their scores."""

from __future__ import annotations

import numpy as np

from ringfence.models.arrays import Array, Floats
from ringfence.models.compile import released
from ringfence.models.conformal.kernels.rank import count_in_buckets

NOBODY = -1  # judges the class: nothing excludes it


@released
def compute_p_value_rows(
    start: int,
    stop: int,
    scores: Floats,
    cells: Array,
    judges: Array,
    ordered: Floats,
    starts: Array,
    table: Floats,
    places: Array,
    lines: Floats,
    levels: Floats,
    p_values: Floats,
    sets: Array,
) -> int:
    """Write p-values and, at each alpha, sets of the rows; return how many scores are NaN.

    Class y of a node in cell c is judged by judges[c, y]. Of judge j, places[j] are its first score
    in ``ordered``, its first bucket in ``starts`` and its first p-value in ``table`` (-1 where all
    weights are 1); lines[j] are low, scale, last bucket and number of scores + 1.
    """
    bad, alphas = 0, len(levels)
    for i in range(start, stop):
        cell, before = cells[i], NOBODY
        for y in range(scores.shape[1]):
            score, judge, p = scores[i, y], judges[cell, y], 1.0
            bad += 0 if score < np.inf else 1
            if judge != before:  # mostly the same for all classes of a node
                low, scale = lines[judge, 0], lines[judge, 1]
                last, total = lines[judge, 2], lines[judge, 3]
                begin, first, entry = places[judge, 0], places[judge, 1], places[judge, 2]
                before = judge
            if judge != NOBODY:
                k = count_in_buckets(score, ordered, low, scale, last, starts, np.uint32(first))
                count = np.int64(k) - begin
                p = table[entry + count] if entry >= 0 else (count + 1.0) / total
            p_values[i, y] = p
            for a in range(alphas):
                sets[a, i, y] = p > levels[a, y]
    return bad
