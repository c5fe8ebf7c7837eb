"""A node's neighbours as columns: how many there are, and the mean of each of their columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Table = NDArray[np.float32]
Ints = NDArray[np.int64]


def neighbour_columns(place: Ints, neighbour: Ints, table: Table, rows: int) -> Table:
    """Return the number of neighbours and the means of their columns [rows, 1 + d].

    Args:
        place: which row a neighbour belongs to, by relationship [m].
        neighbour: where the neighbour stands in `table` [m].
        table: columns of the neighbours [k, d].
        rows: how many rows there are; one without neighbours has NaN means.

    >>> table = np.array([[1.0], [3.0]], np.float32)
    >>> neighbour_columns(np.array([0, 0]), np.array([0, 1]), table, 2).tolist()
    [[2.0, 2.0], [0.0, nan]]
    """
    ones = np.ones(len(place), np.float32)
    near = csr_array((ones, (place, neighbour)), shape=(rows, len(table)))
    count = np.bincount(place, minlength=rows).astype(np.float32)
    sums = np.asarray(near @ table, np.float32)
    means = np.full_like(sums, np.nan)
    np.divide(sums, count[:, None], out=means, where=count[:, None] > 0)
    return np.concatenate([count[:, None], means], axis=1)
