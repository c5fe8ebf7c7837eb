"""Sums of hubs that are kept from pass to pass.

A context node with many neighbours, as an airport has flights, is heard by everybody and grows in
every run. Its sum is kept with the number of sources in it and a hash of them. A list that begins
as it did then is gone on with, any other is gathered anew: rows are append-only and lists ascend,
so a late relationship of an old row, a removed one or another order changes the beginning.

Whether a list begins as it did is seen without reading it while the base of the graph is the same:
what came to the row or went since stands beside the base, and its hash is kept as well. After the
base was written anew the list is read once and compared by the hash of its sources.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import UNKNOWN_BASE, InferenceGraph, RowsBeside, entry_counts
from ringfence.models.inference.kernels.typed import NOT_KEPT
from ringfence.models.inference.typed.graph import beside_hashes

__all__ = ["MIN_ENTRIES_TO_KEEP", "ChannelSums"]

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]

MIN_ENTRIES_TO_KEEP = 32  # fewer are gathered as fast as they are looked up
MAX_SLOTS_PER_CHANNEL = 1 << 18
NEVER = -1


@dataclass(slots=True)
class ChannelSums:
    """Slots of one channel: the row that each belongs to, count and hash of its sources, sums.

    sizes: how many rows the graph had at a slot's last pass. bases: the number of its base.
    beside: the hash of what stood beside the row's base list.
    """

    rows: Ints
    counts: Ints
    hashes: Hashes
    sums: NDArray[np.float64]
    sizes: Ints
    bases: Ints
    beside: Hashes

    @classmethod
    def empty(cls, width: int) -> ChannelSums:
        """Return no slots."""
        nobody, nothing = np.empty(0, np.int64), np.empty(0, np.uint64)
        return cls(nobody, nobody, nothing, np.empty((0, width)), nobody, nobody, nothing)

    def slots_of(self, graph: InferenceGraph, rows: Ints, beside: RowsBeside) -> Ints:
        """Return each row's slot, giving one to those that have none and many relationships."""
        order = np.argsort(self.rows, kind="stable")
        at = np.searchsorted(self.rows, rows, sorter=order)
        inside = np.minimum(at, max(len(self.rows) - 1, 0))
        slots = np.full(len(rows), NOT_KEPT, np.int64)
        if len(self.rows):
            found = self.rows[order[inside]] == rows
            slots[found] = order[inside[found]]
        many = entry_counts(graph, rows, beside) >= MIN_ENTRIES_TO_KEEP
        bare = np.flatnonzero((slots == NOT_KEPT) & many)
        bare = bare[: max(MAX_SLOTS_PER_CHANNEL - len(self.rows), 0)]
        slots[bare] = np.arange(len(self.rows), len(self.rows) + len(bare))
        self._grow(rows[bare])
        return slots

    def beginnings(
        self, graph: InferenceGraph, rows: Ints, slots: Ints, beside: RowsBeside
    ) -> Ints:
        """Return from which row on each list has to be read: behind what its slot holds [rows].

        0: the list is to be read as a whole.
        """
        nowhere = np.zeros(len(rows), np.int64)
        if graph.base == UNKNOWN_BASE or not len(self.rows):
            return nowhere
        at = np.maximum(slots, 0)
        there = (slots != NOT_KEPT) & (self.counts[at] != NEVER) & (self.bases[at] == graph.base)
        least = np.where(there, self.sizes[at], 0)
        same = beside_hashes(graph, rows, least, beside) == self.beside[at]
        return np.where(there & same, least, nowhere)

    def note(self, graph: InferenceGraph, rows: Ints, slots: Ints, beside: RowsBeside) -> None:
        """Remember the graph that the sums of some rows are of."""
        kept = slots != NOT_KEPT
        hashes = beside_hashes(graph, rows, np.full(len(rows), graph.size), beside)
        self.beside[slots[kept]] = hashes[kept]
        self.sizes[slots[kept]] = graph.size
        self.bases[slots[kept]] = graph.base

    def forget(self, rows: Ints) -> None:
        """Let the sums of some rows be gathered anew."""
        self.counts[np.isin(self.rows, rows)] = NEVER

    def _grow(self, rows: Ints) -> None:
        if not len(rows):
            return
        more = ChannelSums(
            rows, np.full(len(rows), NEVER), np.zeros(len(rows), np.uint64),
            np.zeros((len(rows), self.sums.shape[1])), np.zeros(len(rows), np.int64),
            np.full(len(rows), UNKNOWN_BASE), np.zeros(len(rows), np.uint64),
        )  # fmt: skip
        for column in fields(self):
            both = getattr(self, column.name), getattr(more, column.name)
            setattr(self, column.name, np.concatenate(both))
