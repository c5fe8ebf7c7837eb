"""The loop that finds every row's leaf in every tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import released

Array = Any


@released
def add_leaves(
    table: Array, first: Array, column: Array, threshold: Array, missing_left: Array,
    left: Array, right: Array, value: Array, sums: Array,
) -> None:  # fmt: skip
    """Add the value of each row's leaf in each tree, in the order of trees, to ``sums``."""
    outputs = sums.shape[1]
    for row in range(len(table)):
        for tree in range(len(first) - 1):
            at = first[tree]
            while column[at] >= 0:
                x = np.float64(table[row, column[at]])
                goes_left = missing_left[at] if np.isnan(x) else x <= threshold[at]
                at = first[tree] + (left[at] if goes_left else right[at])
            sums[row, tree % outputs] += value[at]
