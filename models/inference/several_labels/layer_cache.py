"""What a pass over several labels keeps for the next one: sums of hubs, rows of the first layer.

Sums: a context node with many neighbours, as an airport has flights, is a neighbour of most nodes
and grows in every run. Its sum is cached with the number of sources in it and a hash of them. If a
list begins as it did then, the sum is continued; any other is gathered anew. Rows are append-only
and lists ascend, so a late relationship of an old row, a removed one or another order changes the
beginning. While the base of the graph is the same, this is seen without reading the list: entries
added to the base or removed from it have a hash, which is cached as well. After the base was
written anew the list is read once and compared by the hash of its sources.

Rows: calibration nodes are evaluated in every run, and most of them have the same neighbours as
before. A row of the first layer depends on its own columns and those of its neighbours: while its
list is the same and none of these columns was written again, it is reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import (
    UNKNOWN_BASE,
    InferenceGraph,
    LateEntries,
    entry_counts,
    find_places,
)
from ringfence.models.inference.kernels.typed import NO_SLOT
from ringfence.models.inference.several_labels.graph import (
    TypedGraph,
    hash_late_entries,
    list_receivers,
)
from ringfence.models.inference.several_labels.plan import TypedPlan

__all__ = ["MIN_ENTRIES_TO_CACHE", "NEVER", "CachedRows", "ChannelSums", "LayerCache"]

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]
Hashes = NDArray[np.uint64]
Arrays = Mapping[str, NDArray[np.generic]]

MIN_ENTRIES_TO_CACHE = 32  # fewer are gathered as fast as they are looked up
MAX_SLOTS_PER_CHANNEL = 1 << 18
MAX_ROWS_PER_LABEL = 1 << 18
NEVER = -1


@dataclass(slots=True)
class ChannelSums:
    """Slots of one channel: the row that each belongs to, count and hash of its sources, sums.

    sizes: how many rows the graph had at a slot's last pass. bases: the number of its base.
    late_hashes: of the entries added to and removed from the row's base list.
    """

    rows: Ints
    counts: Ints
    hashes: Hashes
    sums: NDArray[np.float64]
    sizes: Ints
    bases: Ints
    late_hashes: Hashes

    @classmethod
    def empty(cls, width: int) -> ChannelSums:
        """Return no slots."""
        nobody, nothing = np.empty(0, np.int64), np.empty(0, np.uint64)
        return cls(nobody, nobody, nothing, np.empty((0, width)), nobody, nobody, nothing)

    def slots_of(self, graph: InferenceGraph, rows: Ints, late: LateEntries) -> Ints:
        """Return each row's slot, giving one to those that have none and many relationships."""
        order = np.argsort(self.rows, kind="stable")
        at = np.searchsorted(self.rows, rows, sorter=order)
        inside = np.minimum(at, max(len(self.rows) - 1, 0))
        slots = np.full(len(rows), NO_SLOT, np.int64)
        if len(self.rows):
            known = self.rows[order[inside]] == rows
            slots[known] = order[inside[known]]
        many = entry_counts(graph, rows, late) >= MIN_ENTRIES_TO_CACHE
        bare = np.flatnonzero((slots == NO_SLOT) & many)
        bare = bare[: max(MAX_SLOTS_PER_CHANNEL - len(self.rows), 0)]
        slots[bare] = np.arange(len(self.rows), len(self.rows) + len(bare))
        self._grow(rows[bare])
        return slots

    def beginnings(self, graph: InferenceGraph, rows: Ints, slots: Ints, late: LateEntries) -> Ints:
        """Return from which row on each list has to be read: behind what its slot holds [rows].

        0: the list is to be read as a whole.
        """
        nowhere = np.zeros(len(rows), np.int64)
        if graph.base == UNKNOWN_BASE or not len(self.rows):
            return nowhere
        at = np.maximum(slots, 0)
        there = (slots != NO_SLOT) & (self.counts[at] != NEVER) & (self.bases[at] == graph.base)
        least = np.where(there, self.sizes[at], 0)
        same = hash_late_entries(graph, rows, least, late) == self.late_hashes[at]
        return np.where(there & same, least, nowhere)

    def note(self, graph: InferenceGraph, rows: Ints, slots: Ints, late: LateEntries) -> None:
        """Record which graph the sums of some rows belong to."""
        cached = slots != NO_SLOT
        hashes = hash_late_entries(graph, rows, np.full(len(rows), graph.size), late)
        self.late_hashes[slots[cached]] = hashes[cached]
        self.sizes[slots[cached]] = graph.size
        self.bases[slots[cached]] = graph.base

    def forget(self, rows: Ints) -> None:
        """Drop the sums of some rows, so that they are gathered again."""
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


@dataclass(slots=True)
class CachedRows:
    """Rows of one label, ascending, with their outputs [k, out] of the first layer.

    base: the number of the graph's base then [1]. late_hashes: of the entries added to and removed
    from their base lists.
    """

    rows: Ints
    outputs: Float32s
    base: Ints
    late_hashes: Hashes

    @classmethod
    def of(cls, graph: InferenceGraph, rows: Ints, outputs: Float32s, hashes: Hashes) -> CachedRows:
        """Return rows of this pass, at most so many; hashes: from `hash_late_entries`."""
        some = slice(0, MAX_ROWS_PER_LABEL)
        return cls(rows[some], outputs[some], np.array([graph.base]), hashes[some])

    def places_of(self, graph: InferenceGraph, rows: Ints, hashes: Hashes) -> Ints:
        """Return where each row stands here; -1 where it has to be computed [rows]."""
        if graph.base == UNKNOWN_BASE or self.base[0] != graph.base or not len(self.rows):
            return np.full(len(rows), -1)
        places = find_places(self.rows, rows)
        return np.where(hashes == self.late_hashes[np.maximum(places, 0)], places, -1)

    def forget(self, rows: Ints) -> None:
        """Drop some rows, so that they are computed again."""
        others = ~np.isin(self.rows, rows)
        self.rows, self.outputs = self.rows[others], self.outputs[others]
        self.late_hashes = self.late_hashes[others]


Columns = TypeVar("Columns", ChannelSums, CachedRows)


@dataclass(slots=True)
class LayerCache:
    """Sums by channel and first-layer rows by label, valid for the columns at ``version``."""

    channels: dict[int, ChannelSums] = field(default_factory=dict)
    labels: dict[int, CachedRows] = field(default_factory=dict)
    version: int = NEVER

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return sum(array.nbytes for array in self.arrays().values())

    def forget_altered(self, plan: TypedPlan, graph: TypedGraph, altered: Ints) -> None:
        """Drop everything that was computed from rows whose columns have changed."""
        for label, rows in self.labels.items():
            rows.forget(altered[graph.labels[altered] == label])
        for place in plan.layers[0].channels:
            channel = plan.schema.channels[place]
            receivers = list_receivers(
                graph, channel, altered[graph.labels[altered] == channel.source]
            )
            if place in self.channels:
                self.channels[place].forget(receivers)
            if channel.target in self.labels:
                self.labels[channel.target].forget(receivers)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return everything by name, to be written to a file."""
        arrays: dict[str, NDArray[np.generic]] = {"version": np.array([self.version])}
        parts: dict[str, Mapping[int, Any]] = {"channel": self.channels, "label": self.labels}
        for part, by_place in parts.items():
            for place, columns in by_place.items():
                for column in fields(columns):
                    arrays[f"{part}.{place}.{column.name}"] = getattr(columns, column.name)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> LayerCache:
        """Return what `arrays` was taken from; KeyError where something is missing."""
        return cls(
            _columns("channel", ChannelSums, arrays),
            _columns("label", CachedRows, arrays),
            int(np.asarray(arrays["version"], np.int64)[0]),
        )


def _columns(part: str, kind: type[Columns], arrays: Arrays) -> dict[int, Columns]:
    places = {int(name.split(".")[1]) for name in arrays if name.startswith(f"{part}.")}
    names = [column.name for column in fields(kind)]
    by_place: dict[int, Columns] = {}
    for place in places:
        columns: list[Any] = [np.array(arrays[f"{part}.{place}.{name}"]) for name in names]
        by_place[place] = kind(*columns)
    return by_place
