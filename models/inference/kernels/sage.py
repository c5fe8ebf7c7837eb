"""Both layers of GraphSAGE over rows of incoming neighbours, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import released
from ringfence.models.inference.kernels.project import project

Array = Any


@released
def sage_first(
    start: int, stop: int, rows: Array, offsets: Array, sources: Array,
    first: Array, root: Array, bias: Array, weights: Array, second: Array,
) -> None:  # fmt: skip
    """second_i = relu(mean of first_j + root_r + b) [W2_l | W2_r]."""
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
            total[c] = max(total[c] * share + bias[c] + root[r, c], np.float32(0.0))
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
