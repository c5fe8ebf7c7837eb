"""Passes of a blend: the mean of a network's and of trees' probabilities at the wanted nodes.

Both read the same encoded rows, and what the network keeps between passes is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.inference.typed_pass import TypedPass
from ringfence.models.trees.blend import blend_logits
from ringfence.models.trees.columns import CountRule, encoded_columns
from ringfence.models.trees.ensemble import TreeEnsemble
from ringfence.models.trees.forward import forward_trees

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(slots=True)
class BlendPass:
    """A pass of both; `rule` says which neighbours count for the trees."""

    network: TypedPass
    trees: TreeEnsemble
    rule: CountRule
    classes: int

    def open(self) -> None:
        """Restore encoded rows and sums."""
        self.network.open()

    def outputs(self, wanted: Ints) -> Float32s:
        """Return the logits at `wanted`."""
        rows = self.network.rows
        inputs = encoded_columns(rows.graph, rows.features, self.rule, rows.count_by(self.rule))
        trees = forward_trees(self.trees, inputs, wanted, self.classes)
        return blend_logits(self.network.outputs(wanted), trees)

    def seal(self) -> None:
        """Write encoded rows and sums for the next pass."""
        self.network.seal()

    def describe(self) -> str:
        """Return a sentence on how much was computed, and why."""
        return f"mean of {self.trees.rounds} rounds of trees and a {self.network.describe()}"
