"""Rows of the first layer that are kept from pass to pass.

Calibration nodes are asked for in every run, and most of them hear the same neighbours as before.
A row of the first layer is made of its own columns and those of its neighbours: while its list is
the same and nobody's columns in it were written again, it is taken as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import UNKNOWN_BASE, InferenceGraph, find_places

__all__ = ["LabelRows"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Hashes = NDArray[np.uint64]

MAX_ROWS_PER_LABEL = 1 << 18


@dataclass(slots=True)
class LabelRows:
    """Rows of one label, ascending, with their outputs [k, out].

    base: the number of the graph's base then [1]. beside: hashes of what stood beside their lists.
    """

    rows: Ints
    outputs: Float32s
    base: Ints
    beside: Hashes

    @classmethod
    def of(cls, graph: InferenceGraph, rows: Ints, outputs: Float32s, hashes: Hashes) -> LabelRows:
        """Return rows of this pass, at most so many; hashes: of what stands beside their lists."""
        some = slice(0, MAX_ROWS_PER_LABEL)
        return cls(rows[some], outputs[some], np.array([graph.base]), hashes[some])

    def places_of(self, graph: InferenceGraph, rows: Ints, hashes: Hashes) -> Ints:
        """Return where each row stands here; -1 where it has to be computed [rows]."""
        if graph.base == UNKNOWN_BASE or self.base[0] != graph.base or not len(self.rows):
            return np.full(len(rows), -1)
        places = find_places(self.rows, rows)
        return np.where(hashes == self.beside[np.maximum(places, 0)], places, -1)

    def forget(self, rows: Ints) -> None:
        """Let some rows be computed anew."""
        kept = ~np.isin(self.rows, rows)
        self.rows, self.outputs = self.rows[kept], self.outputs[kept]
        self.beside = self.beside[kept]
