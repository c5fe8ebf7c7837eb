"""Features times weights, compiled: the same bits for a row wherever it stands, on every machine.

Not a library's product of matrices. OpenBLAS on Haswell and Zen gives a row other bits at another
place in its block, and others with one thread than with two; MKL promises neither. Here a row's sum
runs over its features in their order, and no product is fused with its addition. It takes one to
two times as long as OpenBLAS. `np.divide`, unlike the operator, looks for no division by zero, so
that several quotients are made at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import released
from ringfence.models.inference.kernels.project import project

Array = Any


@released
def standardise_and_multiply(
    start: int, stop: int, features: Array, mean: Array, spread: Array, weights: Array, out: Array
) -> None:
    """out_r = ((x_r - mean) / spread) . weights for rows start to stop."""
    row = np.empty(len(mean), np.float32)
    for r in range(start, stop):
        for c in range(len(mean)):
            row[c] = np.divide(features[r, c] - mean[c], spread[c])
        project(row, weights, out[r])


@released
def multiply_rows(start: int, stop: int, values: Array, weights: Array, out: Array) -> None:
    """out_r = values_r . weights for rows start to stop."""
    for r in range(start, stop):
        project(values[r], weights, out[r])
