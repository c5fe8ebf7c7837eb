"""Thresholds within bands of degree over a replayed sequence: what `rule = "auto"` would have had.

Degrees are those of the graph at each step; they are carried forward edge by edge, so that a whole
sequence costs one pass over its edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringfence.models.conformal.bands import (
    band_numbers,
    cut_degrees,
    fewest_nodes,
    merge_bands,
)
from ringfence.models.conformal.sets import threshold
from ringfence.models.sequences.sequence import GraphSequence

__all__ = ["BandedThresholds"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class BandedThresholds:
    """The bands of a sequence at ascending steps, and the thresholds inside them."""

    def __init__(self, sequence: GraphSequence, alpha: float) -> None:
        """Begin before step 0."""
        self.sequence, self.alpha = sequence, alpha
        self._by_edge_step = np.argsort(sequence.edge_step, kind="stable")
        self._edge_steps = sequence.edge_step[self._by_edge_step]
        self._node_steps = np.sort(sequence.node_step)
        self._degrees = np.zeros(len(sequence.node_step), np.int64)
        self._edges_there = 0
        self._step, self._lows = -1, np.zeros(1, np.int64)

    def limits(self, step: Ints, degree: Ints, scores: Floats, degrees: Floats) -> Floats:
        """Return the threshold of each judged node [k].

        Args:
            step: step at which each node is judged, ascending [k].
            degree: its degree there [k].
            scores: calibration scores at its step [k, n].
            degrees: degrees of the calibration nodes at its step [k, n].
        """
        limits_ = np.empty(len(step))
        for i in range(len(step)):
            lows = self._lows_at(int(step[i]), scores.shape[1])
            known = band_numbers(lows, degrees[i].astype(np.int64))
            band = int(band_numbers(lows, degree[i : i + 1])[0])
            counts = np.bincount(known, minlength=len(lows))
            counts[band] += 1
            unions = merge_bands(counts, fewest_nodes(self.alpha))
            limits_[i] = float(threshold(scores[i][unions[known] == unions[band]], self.alpha))
        return limits_

    def _lows_at(self, step: int, calibration: int) -> Ints:
        if step != self._step:
            until = int(np.searchsorted(self._edge_steps, step, side="right"))
            new = self.sequence.edges[:, self._by_edge_step[self._edges_there : until]]
            np.add.at(self._degrees, new.ravel(), 1)
            self._edges_there, self._step = until, step
            there = int(np.searchsorted(self._node_steps, step, side="right"))
            counts = np.bincount(self._degrees[self._degrees > 0], minlength=1)
            counts[0] = there - int(counts[1:].sum())
            self._lows = cut_degrees(counts, calibration, self.alpha)
        return self._lows
