"""Both layers of each network on rows of a CSR, compiled: nothing is materialised per edge.

A first layer gathers its neighbours' transformed features, adds bias and activation, and multiplies
by the second layer's weights at once, so the hidden layer never leaves the cache. Rows ``start`` to
``stop`` of the list are worked on: threads share the list. ``offsets`` and ``sources`` are those of
the rows; ``first`` and ``second`` are tables of the whole graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models._compile import inlined, released

Array = Any

LOG2_E = np.float32(1.4426950408889634)
LN2_HIGH = np.float32(0.693359375)  # ln 2 in two parts: the first is exact times a small integer
LN2_LOW = np.float32(-2.12194440e-4)
LEAST = np.float32(-87.0)  # exp of less is not a normal float32
HALF = np.float32(0.5)
ONE = np.float32(1.0)
C3, C4 = np.float32(1 / 6), np.float32(1 / 24)
C5, C6, C7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)
#: 2^-k for k = 0 .. 126
POWERS = (0.5 ** np.arange(127)).astype(np.float32)


@inlined
def _exp(value: Any) -> Any:
    """e^value for value <= 0, within 2e-7 of it; several at a time, which math.exp can't do.

    value = f - k ln 2 with |f| <= ln 2 / 2; e^f by its series to the seventh power.
    """
    x = max(value, LEAST)
    k = np.int32(HALF - x * LOG2_E)
    times = np.float32(k)
    f = (x + times * LN2_HIGH) + times * LN2_LOW
    series = ONE + f * (ONE + f * (HALF + f * (C3 + f * (C4 + f * (C5 + f * (C6 + f * C7))))))
    return series * POWERS[k]


@inlined
def project(hidden: Array, weights: Array, out: Array) -> None:
    """out = hidden . weights, [h] by [h, k]: one after the other, written down four at a time.

    Not a library's product of matrices: a row's bits would depend on its place among the others.
    """
    height, width = weights.shape
    whole = height - height % 4
    out[:] = 0.0
    for c in range(0, whole, 4):
        one, two, three, four = hidden[c], hidden[c + 1], hidden[c + 2], hidden[c + 3]
        for k in range(width):
            total = out[k] + one * weights[c, k]
            total = total + two * weights[c + 1, k]
            total = total + three * weights[c + 2, k]
            out[k] = total + four * weights[c + 3, k]
    for c in range(whole, height):
        for k in range(width):
            out[k] += hidden[c] * weights[c, k]


@released
def gcn_second(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array, scale: Array,
    second: Array, bias: Array, out: Array,
) -> None:  # fmt: skip
    """out_r = s_i (sum of s_j second_j + s_i second_i) + b; in float64, for a hub hears many."""
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


@released
def sage_first(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array,
    first: Array, own: Array, bias: Array, weights: Array, second: Array,
) -> None:  # fmt: skip
    """second_i = relu(mean of first_j + own_r + b) [W2_l | W2_r]."""
    width = len(bias)
    total = np.empty(width, np.float32)
    for r in range(start, stop):
        total[:] = 0.0
        for e in range(offsets[r], offsets[r + 1]):
            j = sources[e]
            for c in range(width):
                total[c] += first[j, c]
        share = np.float32(1.0) / np.float32(max(offsets[r + 1] - offsets[r], 1))
        for c in range(width):
            total[c] = max(total[c] * share + bias[c] + own[r, c], np.float32(0.0))
        project(total, weights, second[rows[r]])


@released
def sage_second(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array,
    second: Array, bias: Array, out: Array,
) -> None:  # fmt: skip
    """out_r = mean of the left half of second_j + b + the right half of second_i."""
    width = len(bias)
    for r in range(start, stop):
        out[r, :] = 0.0
        for e in range(offsets[r], offsets[r + 1]):
            j = sources[e]
            for c in range(width):
                out[r, c] += second[j, c]
        share = np.float32(1.0) / np.float32(max(offsets[r + 1] - offsets[r], 1))
        for c in range(width):
            out[r, c] = out[r, c] * share + bias[c] + second[rows[r], width + c]


@released
def gat_layer(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array,
    table: Array, width: int, heads: int, bias: Array, out: Array,
) -> None:  # fmt: skip
    """out_r = sum of a_ij value_j + b over j heard and i itself, a the softmax over j per head.

    Columns of the table: values [width], then source energies [heads], then target energies.
    """
    most = 0
    for r in range(start, stop):
        most = max(most, offsets[r + 1] - offsets[r] + 1)
    energy = np.empty(most * heads, np.float32)  # of the node itself, then of whom it hears
    own, top = np.empty(heads, np.float32), np.empty(heads, np.float32)
    total, factor = np.empty(heads, np.float32), np.empty(width, np.float32)
    mixed = np.empty(width, np.float32)
    per = width // heads
    for r in range(start, stop):
        i, begin = rows[r], offsets[r] - 1
        many = offsets[r + 1] - begin
        for h in range(heads):
            own[h] = table[i, width + heads + h]
            top[h], total[h] = -np.inf, 0.0
        for q in range(many):
            row = table[i if q == 0 else sources[begin + q]]
            for h in range(heads):
                value = _leaky(own[h] + row[width + h])
                energy[q * heads + h] = value
                top[h] = max(top[h], value)
        for q in range(many):
            for h in range(heads):
                energy[q * heads + h] -= top[h]
        for q in range(many * heads):
            energy[q] = _exp(energy[q])
        for q in range(many):
            for h in range(heads):
                total[h] += energy[q * heads + h]
        mixed[:] = 0.0
        for q in range(many):
            row = table[i if q == 0 else sources[begin + q]]
            for h in range(heads):
                for c in range(per):
                    factor[h * per + c] = energy[q * heads + h]
            for c in range(width):
                mixed[c] += factor[c] * row[c]
        for c in range(width):
            out[r, c] = mixed[c] / total[c // per] + bias[c]


@inlined
def _leaky(value: Any) -> Any:
    return max(value, np.float32(0.2) * value)


@released
def gat_project(
    start: int, stop: int, rows: Array, hidden: Array, weights: Array, second: Array
) -> None:
    """second_i = elu(hidden_r) [W2 | W2 . att_src | W2 . att_dst]."""
    width = weights.shape[0]
    active = np.empty(width, np.float32)
    for r in range(start, stop):
        for c in range(width):
            value = hidden[r, c]
            below = _exp(min(value, np.float32(0.0))) - ONE
            active[c] = max(value, np.float32(0.0)) + below
        project(active, weights, second[rows[r]])


@released
def walk(
    start: int, stop: int, offsets: Array, sources: Array, scale: Array,
    teleport: float, origin: Array, before: Array, after: Array,
) -> None:  # fmt: skip
    """after_i = (1 - teleport) s_i (sum of s_j before_j + s_i before_i) + teleport origin_i."""
    width = origin.shape[1]
    stay, home = np.float32(1.0 - teleport), np.float32(teleport)
    for i in range(start, stop):
        own = scale[i]
        for c in range(width):
            after[i, c] = own * before[i, c]
        for e in range(offsets[i], offsets[i + 1]):
            j = sources[e]
            factor = scale[j]
            for c in range(width):
                after[i, c] += factor * before[j, c]
        for c in range(width):
            after[i, c] = stay * (own * after[i, c]) + home * origin[i, c]
