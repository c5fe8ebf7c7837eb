"""Both layers of GCN, compiled; the first one over messages that lie on a grid.

Messages are float32 multiples of one power of two, and sums of them are kept in float64, which has
room for every digit of both: no addition rounds. So a sum has the same bits in whatever order its
messages came, and a message that changed can be taken out and put in again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import compiled, inlined, released
from ringfence.models.inference.kernels.project import project

Array = Any

MAX_INCOMING = 1 << 20


@compiled
def weigh(rows: Array, plain: Array, scale: Array, rounding_term: float, first: Array) -> None:
    """first_i = s_i plain_r on the grid: adding the term rounds to it, taking it off is exact."""
    for r in range(len(rows)):
        i = rows[r]
        own = scale[i]
        for c in range(plain.shape[1]):
            value = np.float64(np.float32(own * plain[r, c]))
            first[i, c] = np.float32((value + rounding_term) - rounding_term)


@inlined
def _finish(total: Array, own: Any, bias: Array, hidden: Array, weights: Array, out: Array) -> None:
    for c in range(len(bias)):
        hidden[c] = max(np.float32(own * total[c] + bias[c]), np.float32(0.0))
    project(hidden, weights, out)


@inlined
def _all_exact(i: Any, begin: Any, end: Any, sources: Array, first: Array, limit: Any) -> Any:
    """Whether every message that row i adds up is at most the limit, and a number."""
    if end - begin >= MAX_INCOMING:
        return False
    top = np.abs(first[i])
    for e in range(begin, end):
        row = first[sources[e]]
        for c in range(len(top)):
            top[c] = max(top[c], abs(row[c]))
    largest = np.float32(0.0)
    for c in range(len(top)):
        largest = max(largest, top[c])
    return largest <= limit


@released
def gcn_first(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array, scale: Array, first: Array,
    bias: Array, weights: Array, second: Array, slots: Array, sums: Array, limit: float,
) -> None:  # fmt: skip
    """second_i = relu(s_i (sum of first_j + first_i) + b) W2, first_j = s_j (x W1)_j.

    A row that has a slot leaves its sum there; one with a message above ``limit``, whose sum might
    need more digits than there are, loses its slot.
    """
    width = len(bias)
    total, hidden = np.empty(width, np.float64), np.empty(width, np.float32)
    for r in range(start, stop):
        i = rows[r]
        for c in range(width):
            total[c] = first[i, c]
        for e in range(offsets[r], offsets[r + 1]):
            row = first[sources[e]]
            for c in range(width):
                total[c] += row[c]
        _finish(total, scale[i], bias, hidden, weights, second[i])
        if slots[i] > 0:
            exact = _all_exact(i, offsets[r], offsets[r + 1], sources, first, limit)
            for c in range(width):
                exact = exact and np.isfinite(total[c])
            if exact:
                sums[slots[i] - 1] = total
            else:
                slots[i] = 0


@compiled
def exchange_messages(
    receiver: Array, places: Array, slots: Array, sums: Array,
    rows: Array, before: Array, first: Array,
) -> None:  # fmt: skip
    """sum_i += first_j - before_k for every receiver i of the changed row j = rows[k]."""
    for e in range(len(receiver)):
        total, k = sums[slots[receiver[e]] - 1], places[e]
        new, old = first[rows[k]], before[k]
        for c in range(len(total)):
            total[c] += np.float64(new[c]) - np.float64(old[c])


@released
def gcn_from_sums(
    start: int, stop: int, rows: Array, scale: Array, bias: Array, weights: Array, second: Array,
    slots: Array, sums: Array,
) -> None:  # fmt: skip
    """second_i from the sum that is kept in i's slot."""
    hidden = np.empty(len(bias), np.float32)
    for r in range(start, stop):
        i = rows[r]
        _finish(sums[slots[i] - 1], scale[i], bias, hidden, weights, second[i])


@released
def gcn_second(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array, scale: Array,
    second: Array, bias: Array, out: Array,
) -> None:  # fmt: skip
    """out_r = s_i (sum of s_j second_j + s_i second_i) + b; in float64, for hubs add up many."""
    width = len(bias)
    total = np.empty(width, np.float64)
    for r in range(start, stop):
        i = rows[r]
        own = scale[i]
        for c in range(width):
            total[c] = own * second[i, c]
        for e in range(offsets[r], offsets[r + 1]):
            j = sources[e]
            factor = scale[j]
            for c in range(width):
                total[c] += factor * second[j, c]
        for c in range(width):
            out[r, c] = own * total[c] + bias[c]
