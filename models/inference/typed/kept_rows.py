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
from ringfence.models.inference.typed.graph import beside_hashes

__all__ = ["LabelRows"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]

MAX_ROWS_PER_LABEL = 1 << 18


@dataclass(slots=True)
class LabelRows:
    """Rows of one label, ascending, with their outputs [k, out].

    base: the number of the graph's base then [1]. beside: hashes of what stood beside their lists.
    """

    rows: Ints
    outputs: Float32s
    base: Ints
    beside: NDArray[np.uint64]

    @classmethod
    def of(cls, graph: InferenceGraph, rows: Ints, outputs: Float32s) -> LabelRows:
        """Return rows of this pass, at most so many of them."""
        some = rows[:MAX_ROWS_PER_LABEL]
        beside = beside_hashes(graph, some, np.full(len(some), graph.size))
        return cls(some, outputs[: len(some)], np.array([graph.base]), beside)

    def places_of(self, graph: InferenceGraph, rows: Ints) -> Ints:
        """Return where each row stands here; -1 where it has to be computed [rows]."""
        if graph.base == UNKNOWN_BASE or self.base[0] != graph.base:
            return np.full(len(rows), -1)
        places = find_places(self.rows, rows)
        here = np.flatnonzero(places >= 0)
        now = beside_hashes(graph, rows[here], np.full(len(here), graph.size))
        places[here[now != self.beside[places[here]]]] = -1
        return places

    def forget(self, rows: Ints) -> None:
        """Let some rows be computed anew."""
        kept = ~np.isin(self.rows, rows)
        self.rows, self.outputs = self.rows[kept], self.outputs[kept]
        self.beside = self.beside[kept]
