"""Passes of boosted trees: columns of the wanted nodes alone, and their leaves.

The encoded rows of all nodes are cached between passes, as for networks of several labels; counts,
means and outputs are computed anew in every pass from what is in the graph now.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.jobs.inference.typed_pass import EncodedRows
from ringfence.models.trees.columns import CountRule, encoded_columns
from ringfence.models.trees.ensemble import TreeEnsemble
from ringfence.models.trees.forward import forward_trees

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(slots=True)
class TreePass:
    """A pass of trees; `rule` says which neighbours count."""

    trees: TreeEnsemble
    rows: EncodedRows
    rule: CountRule
    classes: int
    _sentence: str = field(default="", init=False)

    def open(self) -> None:
        """Restore encoded rows."""
        kept = self.rows.open() is not None
        why = "encoded rows were kept" if kept else "nothing was kept from an earlier pass"
        self._sentence = self.rows.cache.damage or why

    def outputs(self, wanted: Ints) -> Float32s:
        """Return the logits at `wanted`."""
        count = self.rows.count_by(self.rule)
        inputs = encoded_columns(self.rows.graph, self.rows.features, self.rule, count)
        self._sentence = (
            f"{self.trees.rounds} rounds of trees at {len(np.unique(wanted)):,} of "
            f"{self.rows.graph.counts[0]:,} nodes: {self._sentence}"
        )
        return forward_trees(self.trees, inputs, wanted, self.classes)

    def seal(self) -> None:
        """Write encoded rows for the next pass."""
        self.rows.cache.seal(self.rows.mirror.version, self.rows.arrays())

    def describe(self) -> str:
        """Return a sentence on how much was computed, and why."""
        return self._sentence
