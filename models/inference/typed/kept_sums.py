"""Sums of hubs that are kept from pass to pass.

A context node with many neighbours, as an airport has flights, is heard by everybody and grows in
every run. Its sum is kept with the number of sources in it and a hash of them. A list that begins
as it did then is gone on with, any other is gathered anew: rows are append-only and lists ascend,
so a late relationship of an old row, a removed one or another order changes the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.kernels.typed import NOT_KEPT

__all__ = ["MIN_SOURCES_TO_KEEP", "ChannelSums", "KeptSums"]

Ints = NDArray[np.int64]

MIN_SOURCES_TO_KEEP = 32  # fewer are gathered as fast as they are looked up
MAX_SLOTS_PER_CHANNEL = 1 << 18
NEVER = -1


@dataclass(slots=True)
class ChannelSums:
    """Slots of one channel: the row that each belongs to, count and hash of its sources, sums."""

    rows: Ints
    counts: Ints
    hashes: NDArray[np.uint64]
    sums: NDArray[np.float64]

    @classmethod
    def empty(cls, width: int) -> ChannelSums:
        """Return no slots."""
        nobody = np.empty(0, np.int64)
        return cls(nobody, nobody, np.empty(0, np.uint64), np.empty((0, width)))

    def slots_of(self, rows: Ints, counts: Ints) -> Ints:
        """Return each row's slot, giving one to those that have none and many sources."""
        order = np.argsort(self.rows, kind="stable")
        at = np.searchsorted(self.rows, rows, sorter=order)
        inside = np.minimum(at, max(len(self.rows) - 1, 0))
        slots = np.full(len(rows), NOT_KEPT, np.int64)
        if len(self.rows):
            found = self.rows[order[inside]] == rows
            slots[found] = order[inside[found]]
        bare = np.flatnonzero((slots == NOT_KEPT) & (counts >= MIN_SOURCES_TO_KEEP))
        bare = bare[: max(MAX_SLOTS_PER_CHANNEL - len(self.rows), 0)]
        slots[bare] = np.arange(len(self.rows), len(self.rows) + len(bare))
        self._grow(rows[bare])
        return slots

    def forget(self, rows: Ints) -> None:
        """Let the sums of some rows be gathered anew."""
        self.counts[np.isin(self.rows, rows)] = NEVER

    def _grow(self, rows: Ints) -> None:
        if not len(rows):
            return
        width = self.sums.shape[1]
        self.rows = np.concatenate([self.rows, rows])
        self.counts = np.concatenate([self.counts, np.full(len(rows), NEVER)])
        self.hashes = np.concatenate([self.hashes, np.zeros(len(rows), np.uint64)])
        self.sums = np.concatenate([self.sums, np.zeros((len(rows), width))])


@dataclass(slots=True)
class KeptSums:
    """Sums by channel, right for the columns as they were at ``version`` of the graph."""

    channels: dict[int, ChannelSums] = field(default_factory=dict)
    version: int = NEVER

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything by name, to be written to a file."""
        found: dict[str, NDArray[np.generic]] = {"version": np.array([self.version])}
        for place, kept in self.channels.items():
            for name in ("rows", "counts", "hashes", "sums"):
                found[f"{place}.{name}"] = getattr(kept, name)
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> KeptSums:
        """Return the sums that `arrays` gave."""
        kept = cls(version=int(np.asarray(arrays["version"], np.int64)[0]))
        for place in {int(name.split(".")[0]) for name in arrays if "." in name}:
            kept.channels[place] = ChannelSums(
                np.array(arrays[f"{place}.rows"], np.int64),
                np.array(arrays[f"{place}.counts"], np.int64),
                np.array(arrays[f"{place}.hashes"], np.uint64),
                np.array(arrays[f"{place}.sums"], np.float64),
            )
        return kept

    @property
    def bytes(self) -> int:
        """How much memory the sums take."""
        return sum(array.nbytes for array in self.arrays().values())
