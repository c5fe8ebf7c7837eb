"""Boosted trees as plain arrays, and what they give for a table of columns.

The arrays are those of scikit-learn's histogram trees, node by node, so that a model's file is
safetensors and scoring needs no scikit-learn. Leaves are added in scikit-learn's order, in float64,
to its baseline: the sums have its bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.trees.kernel import add_leaves

__all__ = ["TreeEnsemble"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
FRONT = "trees."  # what the names of the arrays begin with


@dataclass(frozen=True, slots=True, eq=False)
class TreeEnsemble:
    """All trees of a model, round by round, one per output in each round.

    Args:
        baseline: what every node's outputs begin with, float64 [outputs]; one output for two
            classes, the log odds of the second.
        first: the first node of each tree, and behind the last one, int64 [trees + 1].
        column: which column a node compares, int64 [nodes]; -1 at leaves.
        threshold: a value up to it goes left, float64 [nodes].
        missing_left: whether a missing value goes left, bool [nodes].
        left: the left child, counted from the tree's first node, int64 [nodes].
        right: the right child likewise.
        value: what a leaf adds, float64 [nodes].
        known: the classes that outputs are about, by place, int64.
        unseen: logit of a class without train nodes [1].
    """

    baseline: Floats
    first: Ints
    column: Ints
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: Ints
    right: Ints
    value: Floats
    known: Ints
    unseen: Floats

    @property
    def rounds(self) -> int:
        """Rounds of boosting."""
        return (len(self.first) - 1) // len(self.baseline)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names that they have in a model's file."""
        return {f"{FRONT}{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, weights: Mapping[str, NDArray[Any]]) -> TreeEnsemble:
        """Return the trees among a model's arrays; KeyError where it has none."""
        return cls(**{field.name: weights[f"{FRONT}{field.name}"] for field in fields(cls)})

    def add_up(self, table: Float32s) -> Floats:
        """Return the sums of leaves [n, outputs] for a table of columns [n, d]."""
        sums = np.repeat(self.baseline[None, :], len(table), axis=0)
        add_leaves(
            np.ascontiguousarray(table, np.float32), self.first, self.column, self.threshold,
            self.missing_left, self.left, self.right, self.value, sums,
        )  # fmt: skip
        return sums

    def logits(self, table: Float32s, classes: int) -> Float32s:
        """Return logits of all classes [n, classes]; their softmax are the probabilities.

        Two classes have logits 0 and the log odds of the second.
        """
        sums = self.add_up(table)
        if len(self.known) == 2 and sums.shape[1] == 1:
            sums = np.concatenate([np.zeros_like(sums), sums], axis=1)
        logits = np.full((len(table), classes), self.unseen[0], np.float32)
        logits[:, self.known] = sums
        return logits
