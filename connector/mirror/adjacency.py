"""Relationships by node: a sorted base in mapped files, and the additions and removals since.

A relationship stands at both of its ends, packed as `format` says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.columns import Column, written
from ringfence.connector.mirror.entries import (
    Grouped,
    among,
    at_both_ends,
    distinct,
    group_by_node,
    last_entry_per_edge,
    with_arrows,
    without_arrows,
)
from ringfence.connector.mirror.format import (
    NODE_SHIFT,
    OTHER_AND_CODE_MASK,
    OTHER_SHIFT,
    Ints,
    Packed,
    arrow_of,
    pack_entries,
    points_here,
    relationship_code,
    removal_of,
    require_room,
    unpack_codes,
    unpack_ends,
    unpack_types,
)

MAX_PENDING_RELATIONSHIPS = 1 << 22  # so many may wait unsorted
NODES_PER_MERGE_STEP = 1 << 18  # scratch memory stays small
MIN_LATE_ENTRIES_TO_MERGE = 200_000  # fewer are never worth a merge


@dataclass(slots=True)
class Adjacency:
    """offsets int64 [nodes + 1], others int32, codes uint8: the base. log uint64: changes since.

    `late` holds what the log added, at both ends, sorted; `removed` what it took from the base,
    likewise. `marks` says at which version the log had which length; `changed` int64 [nodes] when
    each node's relationships last changed.
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
    removed: Packed = field(default_factory=lambda: np.empty(0, np.uint64))
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
        return (self.others.rows - len(self.removed) + len(self.late)) // 2

    @property
    def base_number(self) -> int:
        """A number of the base, from its files' names, lengths and checksums."""
        columns = (self.offsets, self.others, self.codes)
        told = "/".join(f"{column.path.name} {column.rows} {column.checksum}" for column in columns)
        return int.from_bytes(blake2b(told.encode(), digest_size=7).digest(), "big")

    def recall(self) -> None:
        """Rebuild what is held in memory from the files: late and removed part, and stamps."""
        nodes = self.marks[-1][0] if self.marks else self.stamps.rows
        self.changed = np.zeros(nodes, np.int64)
        self.changed[: self.stamps.rows] = self.stamps.array
        logged = self.log.array
        node, row = self.stamps.rows, 0
        for nodes, rows, version in self.marks:
            self.changed[node:nodes] = version
            for ends in unpack_ends(logged[row:rows]):
                self.changed[ends] = version
            node, row = nodes, rows
        self.late = self.removed = np.empty(0, np.uint64)
        if points_here(logged).all():
            self.late = at_both_ends(logged)
            return
        logged = last_entry_per_edge(logged)
        arrows, in_base = arrow_of(logged), self._in_base(arrow_of(logged))
        self.late = at_both_ends(arrows[points_here(logged) & ~in_base])
        self.removed = at_both_ends(arrows[~points_here(logged) & in_base])

    def release_pages(self) -> None:
        """Release the pages of the base's files; nothing is lost."""
        for column in (self.offsets, self.others, self.codes):
            column.release()

    def grow(self, nodes: int, version: int) -> None:
        """Make room for new nodes, as many as can be numbered."""
        require_room(nodes)
        fresh = np.full(nodes - len(self.changed), version, np.int64)
        self.changed = np.concatenate([self.changed, fresh])

    def add(self, source: Ints, target: Ints, kind: int, version: int) -> None:
        """Add relationships of one type; those that are known already change nothing."""
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
        arrows = distinct(np.concatenate(self.pending))
        self.pending = []
        arrows = arrows[~among(arrows, self.late)]
        in_base = self._in_base(arrows)
        back = in_base & among(arrows, self.removed)
        arrows, in_base = arrows[~in_base | back], in_base[~in_base | back]
        if not len(arrows):
            return
        self._log(arrows, arrows, version)
        self.removed = without_arrows(self.removed, arrows[in_base])
        self.late = with_arrows(self.late, arrows[~in_base])

    def remove(self, source: Ints, target: Ints, kinds: Ints, version: int) -> int:
        """Remove relationships; return how many of them there were."""
        codes = kinds.astype(np.uint64) * np.uint64(2) + np.uint64(1)
        return self._remove(distinct(pack_entries(target, source, codes)), version)

    def adopt_content(self, other: Adjacency, version: int) -> None:
        """Take the content of another one of the same nodes; only differences count as changed."""
        self.settle(version)
        gone, came = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
        for start in range(0, len(self.changed), NODES_PER_MERGE_STEP):
            stop = min(start + NODES_PER_MERGE_STEP, len(self.changed))
            mine, theirs = self.entries(start, stop), other.entries(start, stop)
            gone.append(mine[points_here(mine) & ~among(mine, theirs)])
            came.append(theirs[points_here(theirs) & ~among(theirs, mine)])
        self._remove(np.concatenate(gone), version)
        self.pending.append(np.concatenate(came))
        self.settle(version)

    def _remove(self, arrows: Packed, version: int) -> int:
        self.settle(version)
        late, in_base = among(arrows, self.late), self._in_base(arrows)
        in_base &= ~among(arrows, self.removed)
        gone = arrows[late | in_base]
        if len(gone):
            self._log(removal_of(gone), gone, version)
            self.late = without_arrows(self.late, arrows[late])
            self.removed = with_arrows(self.removed, arrows[in_base])
        return len(gone)

    def _log(self, logged: Packed, arrows: Packed, version: int) -> None:
        self.log.append(logged)
        for ends in unpack_ends(arrows):
            self.changed[ends] = version

    def is_due(self) -> bool:
        """Whether so much was added and removed that a merge pays."""
        first = self.offsets.rows == 0 and len(self.changed) > 0
        beside = len(self.late) + len(self.removed)
        return first or beside > max(MIN_LATE_ENTRIES_TO_MERGE, self.others.rows // 8)

    def merge(self, version: int) -> None:
        """Write a new base that holds the late part; the old files stay until the next save.

        A long read merges more than once in one version: every base has files of its own, since the
        one that is being read must not be overwritten.
        """
        nodes = len(self.changed)
        name = self.folder.joinpath
        tag = self._unused_tag(version)
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
        self.late = self.removed = np.empty(0, np.uint64)
        self.marks = []

    def _unused_tag(self, version: int) -> str:
        number = 0
        while (self.folder / f"others.{version}.{number}").exists():
            number += 1
        return f"{version}.{number}"

    def entries(self, start: int, stop: int) -> Packed:
        """Return all entries of the nodes start .. stop, packed and sorted."""
        low, high = np.searchsorted(self.late, _bounds(start, stop))
        late = self.late[low:high]
        if start + 1 >= self.offsets.rows:
            return late
        offsets = self.offsets.array[start : stop + 1]
        nodes = np.repeat(np.arange(start, start + len(offsets) - 1), np.diff(offsets))
        part = slice(int(offsets[0]), int(offsets[-1]))
        base = pack_entries(nodes, self.others.array[part], self.codes.array[part])
        if len(self.removed):
            low, high = np.searchsorted(self.removed, _bounds(start, stop))
            base = base[~among(base, self.removed[low:high])]
        return np.sort(np.concatenate([base, late]), kind="stable") if len(late) else base

    def entries_of(self, rows: Ints) -> Packed:
        """Return all entries of some nodes, which ascend, packed and sorted."""
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = [part for part in np.split(rows, ends) if len(part)]
        parts = [self.entries(int(part[0]), int(part[-1]) + 1) for part in runs]
        return np.concatenate([np.empty(0, np.uint64), *parts])

    def starting_at(self, rows: Ints) -> Ints:
        """Return (source, target, type) of the relationships that start at some nodes [3, m]."""
        entries = self.entries_of(rows)
        entries = entries[~points_here(entries)]
        return np.stack([*unpack_ends(entries), unpack_types(entries)])

    def touching(self, rows: Ints) -> Ints:
        """Return (source, target, type) of the relationships that touch some nodes [3, m]."""
        entries = self.entries_of(rows)
        here = points_here(entries)
        ends, others = unpack_ends(entries)
        source, target = np.where(here, others, ends), np.where(here, ends, others)
        edges = np.stack([source, target, unpack_types(entries)])
        return np.asarray(np.unique(edges, axis=1))

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

    def late_part(self) -> Grouped:
        """Return the late part by node: nodes [m], offsets [m + 1], others, codes."""
        return group_by_node(self.late)

    def removed_part(self) -> Grouped:
        """Return what of the base is removed, likewise."""
        return group_by_node(self.removed)

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


def _bounds(start: int, stop: int) -> Packed:
    """Entries of the nodes start .. stop lie between these two."""
    return np.array([start, stop], np.uint64) << NODE_SHIFT
