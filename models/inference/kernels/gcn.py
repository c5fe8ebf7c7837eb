"""Both layers of GCN, compiled; the first one over messages that lie on a grid.

Messages are float32 multiples of one power of two, and sums of them are kept in float64, which has
room for every digit of both: no addition rounds. So a sum has the same bits in whatever order its
messages came, and a message that changed can be taken out and put in again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import compiled, inlined, released
from ringfence.models.inference.kernels.fetch import AHEAD, fetch_row
from ringfence.models.inference.kernels.node_hash import node_hash
from ringfence.models.inference.kernels.project import project

Array = Any

MAX_INCOMING = 1 << 20


@inlined
def _weighed(value: Any, node_scale: Any, rounding_term: Any) -> Any:
    """s x on the grid: adding the term rounds to it."""
    return np.float32((np.float64(np.float32(node_scale * value)) + rounding_term) - rounding_term)


@compiled
def weigh(plain: Array, scale: Array, rounding_term: float) -> None:
    """plain_r becomes s_r plain_r on the grid: adding the term rounds to it."""
    for r in range(len(plain)):
        node_scale = scale[r]
        for c in range(plain.shape[1]):
            plain[r, c] = _weighed(plain[r, c], node_scale, rounding_term)


@released
def exchange_first(
    start: int, stop: int, rows: Array, places: Array, features: Array, mean: Array, spread: Array,
    weights: Array, scale: Array, rounding_term: float, limit: float, known: int, first: Array,
    messages: Array, loud: Array,
) -> None:  # fmt: skip
    """Put the messages of rows into ``first``; fill ``messages`` and ``loud``.

    places: where the rows' features stand. known: nodes from this number on had no message.
    messages [rows, 2 width]: the old one, then the new. loud: rows with a message above ``limit``,
    too large for an exact sum.
    """
    width = first.shape[1]
    plain, new = np.empty(len(mean), np.float32), np.empty(width, np.float32)
    for r in range(start, stop):
        if r + 2 < stop:
            fetch_row(features, places[r + 2])
            fetch_row(first, rows[r + 2])
        i, at = rows[r], places[r]
        for c in range(len(mean)):
            plain[c] = np.divide(features[at, c] - mean[c], spread[c])
        project(plain, weights, new)
        both, kept = messages[r], first[i]
        quiet = True
        for c in range(width):
            message = _weighed(new[c], scale[i], rounding_term)
            both[c] = kept[c]
            both[width + c] = message
            kept[c] = message
            quiet &= abs(message) <= limit
        if i >= known:
            both[:width] = 0.0
        loud[r] = not quiet


@inlined
def finish_row(
    total: Array, node_scale: Any, bias: Array, hidden: Array, weights: Array, out: Array
) -> None:
    """out = relu(s total + b) W2."""
    for c in range(len(bias)):
        hidden[c] = max(np.float32(node_scale * total[c] + bias[c]), np.float32(0.0))
    project(hidden, weights, out)


@inlined
def _is_exact(top: Array, total: Array, count: Any, limit: Any) -> Any:
    """Whether messages up to ``top`` are so small and so few that no digit of their sum is lost."""
    exact = count < MAX_INCOMING
    for c in range(len(top)):
        exact = exact and top[c] <= limit and np.isfinite(total[c])
    return exact


@released
def gcn_first(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array, scale: Array, first: Array,
    bias: Array, weights: Array, second: Array, slots: Array, sums: Array, hashes: Array,
    limit: float,
) -> None:  # fmt: skip
    """second_i = relu(s_i (sum of first_j + first_i) + b) W2, first_j = s_j (x W1)_j.

    A row that has a slot leaves its sum there, with a hash of its neighbours; one with a message
    above ``limit``, whose sum might need more digits than there are, loses its slot.
    """
    width = len(bias)
    total, hidden = np.empty(width, np.float64), np.empty(width, np.float32)
    top = np.empty(width, np.float32)
    last = offsets[stop]
    for r in range(start, stop):
        i, begin, end = rows[r], offsets[r], offsets[r + 1]
        if r + 1 < stop:
            fetch_row(first, rows[r + 1])
        for c in range(width):
            total[c] = first[i, c]
        if slots[i] > 0:
            mark = np.uint64(0)
            for c in range(width):
                top[c] = abs(first[i, c])
            for e in range(begin, end):
                if e + AHEAD < last:
                    fetch_row(first, sources[e + AHEAD])
                row = first[sources[e]]
                mark += node_hash(sources[e])
                for c in range(width):
                    total[c] += row[c]
                    top[c] = max(top[c], abs(row[c]))
            if _is_exact(top, total, end - begin, limit):
                for c in range(width):
                    sums[slots[i] - 1, c] = total[c]
                hashes[slots[i] - 1] = mark
            else:
                slots[i] = 0
        else:
            for e in range(begin, end):
                if e + AHEAD < last:
                    fetch_row(first, sources[e + AHEAD])
                row = first[sources[e]]
                for c in range(width):
                    total[c] += row[c]
        finish_row(total, scale[i], bias, hidden, weights, second[i])


@released
def gcn_second(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array, scale: Array,
    second: Array, bias: Array, out: Array,
) -> None:  # fmt: skip
    """out_r = s_i (sum of s_j second_j + s_i second_i) + b; in float64, since hubs add up many."""
    width = len(bias)
    total = np.empty(width, np.float64)
    last = offsets[stop]
    for r in range(start, stop):
        i = rows[r]
        node_scale = scale[i]
        for c in range(width):
            total[c] = node_scale * second[i, c]
        for e in range(offsets[r], offsets[r + 1]):
            if e + AHEAD < last:
                fetch_row(second, sources[e + AHEAD])
            j = sources[e]
            factor = scale[j]
            for c in range(width):
                total[c] += factor * second[j, c]
        for c in range(width):
            out[r, c] = node_scale * total[c] + bias[c]
