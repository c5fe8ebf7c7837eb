"""Both layers of GAT over rows of incoming neighbours, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import inlined, released
from ringfence.models.inference.kernels.project import project

Array = Any

LOG2_E = np.float32(1.4426950408889634)
LN2_HIGH = np.float32(0.693359375)  # ln 2 in two parts: the first is exact times a small integer
LN2_LOW = np.float32(-2.12194440e-4)
MIN_EXPONENT = np.float32(-87.0)  # exp of less is not a normal float32
HALF = np.float32(0.5)
ONE = np.float32(1.0)
C3, C4 = np.float32(1 / 6), np.float32(1 / 24)
C5, C6, C7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)
#: 2^-k for k = 0 .. 126
POWERS = (0.5 ** np.arange(127)).astype(np.float32)
FIRST_POWER, LAST_POWER = np.int32(0), np.int32(126)


@inlined
def _exp(value: Any) -> Any:
    """e^value for value <= 0, within 2e-7 of it; several at a time, which math.exp can't do.

    value = f - k ln 2 with |f| <= ln 2 / 2; e^f by its series to the seventh power.
    """
    x = max(value, MIN_EXPONENT)
    k = min(max(np.int32(HALF - x * LOG2_E), FIRST_POWER), LAST_POWER)  # NaN is any integer
    times = np.float32(k)
    f = (x + times * LN2_HIGH) + times * LN2_LOW
    series = ONE + f * (ONE + f * (HALF + f * (C3 + f * (C4 + f * (C5 + f * (C6 + f * C7))))))
    return series * POWERS[k]


@released
def gat_layer(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array,
    table: Array, width: int, heads: int, bias: Array, out: Array,
) -> None:  # fmt: skip
    """out_r = sum of a_ij value_j + b over neighbours j and i itself, a the softmax over j.

    Columns of the table: values [width], then source energies [heads], then target energies.
    """
    most = 0
    for r in range(start, stop):
        most = max(most, offsets[r + 1] - offsets[r] + 1)
    energy = np.empty(most * heads, np.float32)  # of the node itself, then of its neighbours
    target_energy, top = np.empty(heads, np.float32), np.empty(heads, np.float32)
    total, factor = np.empty(heads, np.float32), np.empty(width, np.float32)
    mixed = np.empty(width, np.float32)
    per = width // heads
    for r in range(start, stop):
        i, begin = rows[r], offsets[r] - 1
        many = offsets[r + 1] - begin
        for h in range(heads):
            target_energy[h] = table[i, width + heads + h]
            top[h], total[h] = -np.inf, 0.0
        for q in range(many):
            row = table[i if q == 0 else sources[begin + q]]
            for h in range(heads):
                value = _leaky(target_energy[h] + row[width + h])
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
