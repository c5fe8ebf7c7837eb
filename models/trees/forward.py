"""The outputs of trees at some nodes of a graph, some rows at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.models.trees.columns import ColumnInputs, tree_columns
from ringfence.models.trees.ensemble import TreeEnsemble

__all__ = ["forward_trees"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

ROWS_PER_STEP = 16_384  # whose columns are held at a time


def forward_trees(
    trees: TreeEnsemble, inputs: ColumnInputs, wanted: Ints, classes: int
) -> Float32s:
    """Return the logits at ``wanted``, rows of the classified label [m, classes].

    Every row is computed from the graph as it is, with nothing kept from an earlier pass: so the
    outputs of a run are those of a pass over everything, bit by bit, whatever happened before.
    """
    rows, places = np.unique(np.asarray(wanted, np.int64), return_inverse=True)
    parts = [np.empty((0, classes), np.float32)]
    for start in range(0, len(rows), ROWS_PER_STEP):
        table = tree_columns(inputs, rows[start : start + ROWS_PER_STEP])
        parts.append(trees.logits(table, classes))
    return np.concatenate(parts)[places]
