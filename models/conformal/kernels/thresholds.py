"""Compiled thresholds of many calibration sets, with a mark where a double may not decide."""

from __future__ import annotations

import numpy as np

from ringfence.models.arrays import Array, Floats
from ringfence.models.compile import compiled

P_MARGIN = 1e-11  # far above the rounding of a float sum of a million weights


@compiled
def weighted_thresholds(
    scores: Floats,
    weights: Floats,
    rows: Array,
    test_weights: Floats,
    alpha: float,
    thresholds: Floats,
    unsure: Array,
) -> None:
    """Write the threshold of row rows[i] for test_weights[i]; rows must not fall.

    unsure[i] is set where some p-value is so near to alpha that float sums may be wrong.
    """
    n = scores.shape[1]
    order, running = np.empty(n, np.int64), np.empty(n + 1)
    last = -1
    for i in range(len(rows)):
        row = rows[i]
        if row != last:
            order = np.argsort(scores[row])
            running[0] = 0.0
            for k in range(n):
                running[k + 1] = running[k] + weights[row, order[k]]
            last = row
        total = running[n] + test_weights[i]
        low, high = 0, n + 1  # the first k in low..high with p(k) > alpha; n + 1 if there is none
        while low < high:
            middle = (low + high) // 2
            p = (running[middle] + test_weights[i]) / total
            if abs(p - alpha) < P_MARGIN:
                unsure[i] = True
            if p > alpha:
                high = middle
            elif middle == n:
                low = n + 1
            else:
                low = middle + 1
        if low == 0:
            thresholds[i] = -np.inf
        else:
            thresholds[i] = scores[row, order[low - 1]] if low <= n else np.inf


@compiled
def fill_forward(
    now: Floats, tick: Array, place: Array, value: Floats, ticks: int, table: Floats
) -> None:
    """table[t] = ``now`` after all values up to tick t; ``now`` is left as after the last one."""
    k = 0
    for t in range(ticks):
        while k < len(tick) and tick[k] <= t:
            now[place[k]] = value[k]
            k += 1
        table[t] = now
