"""Sums of encoded relationships by node, exact in whatever order relationships come and go.

A sum of floats depends on the order of its terms, and what was added can't be taken away again. So
encoded values are rounded to multiples of 2^-24, the precision of a float32 near one, and added as
integers: the sums that a run keeps and changes are those of a pass over everything, bit by bit.

    sums = add_rows(np.zeros((nodes, width), np.int64), receivers, encoded)
    means_of(sums)                  # float32 [nodes, width], 0 where a node has no relationship
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LIMIT", "add_rows", "means_of"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

BITS = 24
LIMIT = 2048.0  # encoders give 10 at most, a user's own may give more: it is cut off here
ROWS_PER_STEP = 1 << 18


def add_rows(sums: Ints, rows: Ints, encoded: Float32s, sign: int = 1) -> Ints:
    """Add encoded relationships [m, width] to the sums of their nodes `rows` [m], in place.

    The first column is the constant 1, so that it counts. 2^28 relationships of a node fit. A
    `sign` of -1 takes away.

    >>> sums = add_rows(np.zeros((2, 1), np.int64), np.array([1, 1]), np.ones((2, 1), np.float32))
    >>> int(add_rows(sums, np.array([1]), np.ones((1, 1), np.float32), -1)[1, 0]) == 2**BITS
    True
    """
    for start in range(0, len(rows), ROWS_PER_STEP):
        part = slice(start, start + ROWS_PER_STEP)
        exact = np.clip(encoded[part].astype(np.float64), -LIMIT, LIMIT) * 2.0**BITS
        whole = np.rint(exact).astype(np.int64) * sign
        for column in range(whole.shape[1]):
            np.add.at(sums[:, column], rows[part], whole[:, column])
    return sums


def means_of(sums: Ints) -> Float32s:
    """Return the mean of each column over a node's relationships; 0 where it has none.

    >>> means_of(np.array([[2 * 2**BITS, 3 * 2**BITS], [0, 0]])).tolist()
    [[1.0, 1.5], [0.0, 0.0]]
    """
    counts = np.maximum(sums[:, :1] >> BITS, 1)
    means: Float32s = (sums / counts / 2.0**BITS).astype(np.float32)
    return means
