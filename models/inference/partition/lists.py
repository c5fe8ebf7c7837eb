"""Incoming neighbours of the rows that a partition owns: a base, and lists that replaced some.

A row is known here by its place among the owned rows, a neighbour by its number in the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ringfence.models.inference.graph import InNeighbours, find_places

__all__ = ["OwnedLists"]

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

ROWS_AT_ONCE = 65_536
MERGE_SHARE = 8  # the base is written anew when an eighth of it has been replaced


@dataclass(slots=True)
class OwnedLists:
    """List i of the base is ``offsets[i] .. offsets[i + 1]`` of `sources`; `late` ones replace it.

    late_rows int64 [m], ascending, with late_offsets [m + 1] and late_sources.
    """

    offsets: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    sources: Numbers = field(default_factory=lambda: np.empty(0, np.int32))
    late_rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    late_offsets: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    late_sources: Numbers = field(default_factory=lambda: np.empty(0, np.int32))

    def arrays(self, front: str = "") -> dict[str, NDArray[Any]]:
        """Return the columns by name, with `front` before each name."""
        return {front + column.name: getattr(self, column.name) for column in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], front: str = "") -> Self:
        """Return lists of these columns; the base is not copied, the late lists are."""
        base, late = ("offsets", "sources"), ("late_rows", "late_offsets", "late_sources")
        return cls(*(arrays[front + name] for name in base),
                   *(arrays[front + name].copy() for name in late))  # fmt: skip

    def replace(self, rows: Ints, offsets: Ints, sources: Numbers) -> bool:
        """Replace the lists of some rows, which ascend; return True if a merge would pay now.

        >>> lists = OwnedLists()
        >>> lists.replace(np.array([0, 1]), np.array([0, 1, 3]), np.array([7, 2, 5], np.int32))
        True
        >>> lists.take(np.array([1])).sources
        array([2, 5], dtype=int32)
        """
        kept = np.flatnonzero(~np.isin(self.late_rows, rows))
        before = _picked(self.late_offsets, self.late_sources, kept)
        all_rows = np.concatenate([self.late_rows[kept], rows])
        counts = np.concatenate([np.diff(before[0]), np.diff(offsets)])
        starts = np.concatenate([before[0][:-1], offsets[:-1] + len(before[1])])
        both = np.concatenate([before[1], sources.astype(np.int32)])
        order = np.argsort(all_rows, kind="stable")
        self.late_rows = all_rows[order]
        self.late_offsets, places = _spread(starts[order], counts[order])
        self.late_sources = both[places]
        return len(self.late_sources) * MERGE_SHARE > len(self.sources)

    def follow_base(self, rows: Ints) -> bool:
        """Whether rows come right behind the base, with no late lists: it can go on with theirs."""
        base = len(self.offsets) - 1
        return bool(
            len(rows)
            and not len(self.late_rows)
            and rows[0] == base
            and rows[-1] == base + len(rows) - 1
        )

    def merged(self, owned: int) -> tuple[Ints, Numbers]:
        """Return offsets and sources of one base that holds the late lists, for `owned` rows.

        Some rows at a time, so that only the result takes additional memory.
        """
        offsets = np.zeros(owned + 1, np.int64)
        parts = [np.empty(0, np.int32)]
        for start in range(0, owned, ROWS_AT_ONCE):
            near = self.take(np.arange(start, min(start + ROWS_AT_ONCE, owned)))
            offsets[start + 1 : start + 1 + len(near.rows)] = offsets[start] + near.offsets[1:]
            parts.append(near.sources)
        return offsets, np.concatenate(parts)

    def rest_on(self, offsets: Ints, sources: Numbers) -> None:
        """Use this base, without late lists."""
        self.offsets, self.sources = offsets, sources
        self.late_rows, self.late_offsets = np.empty(0, np.int64), np.zeros(1, np.int64)
        self.late_sources = np.empty(0, np.int32)

    def take(self, rows: Ints) -> InNeighbours:
        """Return the lists of some rows; one that has none yet is empty."""
        wanted = np.ascontiguousarray(rows, np.int64)
        in_base = wanted < len(self.offsets) - 1
        safe = np.where(in_base, wanted, 0)
        starts = np.where(in_base, self.offsets[safe], 0)
        counts = np.where(in_base, self.offsets[np.minimum(safe + 1, len(self.offsets) - 1)], 0)
        counts = counts - starts
        places = find_places(self.late_rows, wanted)
        late = places >= 0
        if not late.any():
            offsets, at = _spread(starts, counts)
            return InNeighbours(wanted, offsets, self.sources[at])
        in_late = places[late]
        counts[late] = self.late_offsets[in_late + 1] - self.late_offsets[in_late]
        starts[late] = self.late_offsets[in_late]
        offsets, at = _spread(starts, counts)
        from_late = np.repeat(late, counts)
        sources = np.empty(len(at), np.int32)
        sources[~from_late] = self.sources[at[~from_late]]
        sources[from_late] = self.late_sources[at[from_late]]
        return InNeighbours(wanted, offsets, sources)


def _picked(offsets: Ints, sources: Numbers, rows: Ints) -> tuple[Ints, Numbers]:
    starts = offsets[rows]
    new, places = _spread(starts, offsets[rows + 1] - starts)
    return new, sources[places]


def _spread(starts: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Offsets of lists put one after the other, and where each of their entries stands."""
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
    return offsets, places
