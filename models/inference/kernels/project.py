"""The product of one row with a matrix, compiled into every first layer."""

from __future__ import annotations

from typing import Any

from ringfence.models.compile import inlined

Array = Any


@inlined
def project(hidden: Array, weights: Array, out: Array) -> None:
    """out = hidden . weights, [h] by [h, k]: added in order, unrolled four at a time.

    Not a library's product of matrices: a row's bits would depend on its place among the others.
    """
    height, width = weights.shape
    whole = height - height % 4
    out[:] = 0.0
    for c in range(0, whole, 4):
        first, second, third, fourth = hidden[c], hidden[c + 1], hidden[c + 2], hidden[c + 3]
        for k in range(width):
            total = out[k] + first * weights[c, k]
            total = total + second * weights[c + 1, k]
            total = total + third * weights[c + 2, k]
            out[k] = total + fourth * weights[c + 3, k]
    for c in range(whole, height):
        for k in range(width):
            out[k] += hidden[c] * weights[c, k]
