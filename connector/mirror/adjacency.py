"""Relationships by node: a sorted base in mapped files, and what came since beside it.

A relationship stands at both of its ends, packed as `format` says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.columns import Column, written
from ringfence.connector.mirror.format import (
    NODE_SHIFT,
    OTHER_AND_CODE_MASK,
    OTHER_SHIFT,
    Ints,
    Packed,
    pack_entries,
    points_here,
    relationship_code,
    turn_to_source,
    unpack_codes,
    unpack_ends,
    unpack_types,
)

MAX_PENDING_RELATIONSHIPS = 1 << 22  # so many may wait unsorted
NODES_PER_MERGE_STEP = 1 << 18  # scratch memory stays small
MIN_LATE_ENTRIES_TO_MERGE = 200_000  # fewer are never worth a merge


@dataclass(slots=True)
class Adjacency:
    """offsets int64 [nodes + 1], others int32, codes uint8: the base. log uint64: what came since.

    `late` holds the log's entries at both ends, sorted. `marks` says at which version the log had
    which length; `changed` int64 [nodes] when each node's relationships last changed.
    """

    folder: Path
    offsets: Column
    others: Column
    codes: Column
    stamps: Column
    log: Column
    marks: list[tuple[int, int, int]] = field(default_factory=list)
    changed: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    late: Packed = field(default_factory=lambda: np.empty(0, np.uint64))
    pending: list[Packed] = field(default_factory=list)

    @classmethod
    def empty(cls, folder: Path, tag: str = "0") -> Adjacency:
        """Return the relationships of no nodes; `tag` names files that nothing else uses."""
        return cls(
            folder,
            offsets=Column(folder / f"offsets.{tag}", np.int64),
            others=Column(folder / f"others.{tag}", np.int32),
            codes=Column(folder / f"codes.{tag}", np.uint8),
            stamps=Column(folder / f"stamps.{tag}", np.int64),
            log=Column(folder / f"log.{tag}", np.uint64),
        )

    @property
    def count(self) -> int:
        """How many distinct relationships there are."""
        return self.others.rows // 2 + self.log.rows

    def recall(self) -> None:
        """Rebuild what is held in memory from the files: the late part and the stamps."""
        nodes = self.marks[-1][0] if self.marks else self.stamps.rows
        self.changed = np.zeros(nodes, np.int64)
        self.changed[: self.stamps.rows] = self.stamps.array
        arrows = self.log.array
        node, row = self.stamps.rows, 0
        for nodes, rows, version in self.marks:
            self.changed[node:nodes] = version
            for ends in unpack_ends(arrows[row:rows]):
                self.changed[ends] = version
            node, row = nodes, rows
        self.late = np.sort(np.concatenate([arrows, turn_to_source(arrows)]))

    def grow(self, nodes: int, version: int) -> None:
        """Make room for new nodes."""
        fresh = np.full(nodes - len(self.changed), version, np.int64)
        self.changed = np.concatenate([self.changed, fresh])

    def add(self, source: Ints, target: Ints, kind: int, version: int) -> None:
        """Take relationships of one type in; those that are known already change nothing."""
        code = np.uint64(relationship_code(kind, points_here=True))
        self.pending.append(pack_entries(target, source, code))
        if sum(map(len, self.pending)) > MAX_PENDING_RELATIONSHIPS:
            self.settle(version)
            if len(self.late) > max(MIN_LATE_ENTRIES_TO_MERGE, self.others.rows // 4):
                self.merge(version)

    def settle(self, version: int) -> None:
        """Sort what is pending into the late part and the log."""
        if not self.pending:
            return
        arrows = _distinct(np.concatenate(self.pending))
        self.pending = []
        arrows = arrows[~_among(arrows, self.late)]
        arrows = arrows[~self._in_base(arrows)]
        if not len(arrows):
            return
        self.log.append(arrows)
        for ends in unpack_ends(arrows):
            self.changed[ends] = version
        self.late = np.sort(
            np.concatenate([self.late, arrows, turn_to_source(arrows)]), kind="stable"
        )

    def is_due(self) -> bool:
        """Whether the late part has grown so large that a merge pays."""
        first = self.offsets.rows == 0 and len(self.changed) > 0
        return first or len(self.late) > max(MIN_LATE_ENTRIES_TO_MERGE, self.others.rows // 8)

    def merge(self, version: int) -> None:
        """Write a new base that holds the late part; the old files stay until the next save.

        A long read merges more than once in one version: every base has files of its own, for the
        one that is being read must not be written over.
        """
        nodes = len(self.changed)
        name = self.folder.joinpath
        tag = f"{version}.{self.count}"
        offsets = np.zeros(nodes + 1, np.int64)
        others = Column(name(f"others.{tag}"), np.int32)
        codes = Column(name(f"codes.{tag}"), np.uint8)
        for start in range(0, nodes, NODES_PER_MERGE_STEP):
            stop = min(start + NODES_PER_MERGE_STEP, nodes)
            entries = self.entries(start, stop)
            node, other = unpack_ends(entries)
            others.append(other.astype(np.int32))
            codes.append(unpack_codes(entries))
            offsets[start + 1 : stop + 1] = np.bincount(node - start, minlength=stop - start)
        self.offsets = written(name(f"offsets.{tag}"), np.cumsum(offsets))
        self.others, self.codes = others, codes
        self.stamps = written(name(f"stamps.{tag}"), self.changed)
        self.log = Column(name(f"log.{tag}"), np.uint64)
        self.late, self.marks = np.empty(0, np.uint64), []

    def entries(self, start: int, stop: int) -> Packed:
        """Return all entries of the nodes start .. stop, packed and sorted."""
        low, high = np.searchsorted(self.late, np.array([start, stop], np.uint64) << NODE_SHIFT)
        late = self.late[low:high]
        if start + 1 >= self.offsets.rows:
            return late
        offsets = self.offsets.array[start : stop + 1]
        nodes = np.repeat(np.arange(start, start + len(offsets) - 1), np.diff(offsets))
        part = slice(int(offsets[0]), int(offsets[-1]))
        base = pack_entries(nodes, self.others.array[part], self.codes.array[part])
        return np.sort(np.concatenate([base, late]), kind="stable") if len(late) else base

    def starting_at(self, rows: Ints) -> Ints:
        """Return (source, target, type) of the relationships that start at some nodes [3, m]."""
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = [part for part in np.split(rows, ends) if len(part)]
        parts = [self.entries(int(part[0]), int(part[-1]) + 1) for part in runs]
        entries = np.concatenate([np.empty(0, np.uint64), *parts])
        entries = entries[~points_here(entries)]
        return np.stack([*unpack_ends(entries), unpack_types(entries)])

    def edges(self) -> Ints:
        """Return (source, target, type) of all relationships, int64 [3, E]; for small graphs."""
        nodes = len(self.changed)
        parts = [
            self.entries(at, min(at + NODES_PER_MERGE_STEP, nodes))
            for at in range(0, nodes, NODES_PER_MERGE_STEP)
        ]
        entries = np.concatenate([np.empty(0, np.uint64), *parts])
        arrows = entries[points_here(entries)]
        target, source = unpack_ends(arrows)
        kind = unpack_types(arrows)
        order = np.lexsort((kind, target, source))
        return np.stack([source[order], target[order], kind[order]])

    def late_part(self) -> tuple[Ints, Ints, NDArray[np.int32], NDArray[np.uint8]]:
        """Return the late part by node: nodes [m], offsets [m + 1], others, codes."""
        node, other = unpack_ends(self.late)
        nodes, starts = np.unique(node, return_index=True)
        offsets = np.append(starts, len(node)).astype(np.int64)
        return nodes, offsets, other.astype(np.int32), unpack_codes(self.late)

    def _in_base(self, entries: Packed) -> NDArray[np.bool_]:
        """Which entries the base holds: a binary search inside each one's node, all at once."""
        node, _ = unpack_ends(entries)
        known = node + 1 < self.offsets.rows
        if not known.any() or not self.others.rows:
            return np.zeros(len(entries), np.bool_)
        offsets = self.offsets.array
        low = np.where(known, offsets[np.where(known, node, 0)], 0)
        end = np.where(known, offsets[np.where(known, node, 0) + 1], 0)
        high = end.copy()
        wanted = (entries & OTHER_AND_CODE_MASK).astype(np.int64)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            below = self._at(np.where(open_, middle, 0)) < wanted
            low = np.where(open_ & below, middle + 1, low)
            high = np.where(open_ & ~below, middle, high)
        inside = low < end
        return np.asarray(inside & (self._at(np.where(inside, low, 0)) == wanted))

    def _at(self, places: Ints) -> Ints:
        other = self.others.array[places].astype(np.int64)
        return other << int(OTHER_SHIFT) | self.codes.array[places].astype(np.int64)


def _distinct(values: Packed) -> Packed:
    """Sorted, each once; sorting is several times faster than the hashing that np.unique does."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    distinct: Packed = ordered[first]
    return distinct


def _among(values: Packed, ordered: Packed) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values)
