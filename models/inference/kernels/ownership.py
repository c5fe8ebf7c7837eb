"""Choice of a row's partition: the one with most of its neighbours that has room, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.models.compile import compiled

Array = Any

NO_OWNER = -1


@compiled
def choose_owners(
    rows: Array, offsets: Array, sources: Array, owners: Array, sizes: Array, most: int
) -> int:
    """Let each row, in turn, join the partition that owns most of its neighbours; count the moves.

    A partition with ``most`` rows takes no more. Where several own equally many, the row stays
    where it is, or joins the smallest of them.
    """
    counts = np.zeros(len(sizes), np.int64)
    moves = 0
    for r in range(len(rows)):
        row = rows[r]
        old = owners[row]
        counts[:] = 0
        for e in range(offsets[r], offsets[r + 1]):
            owner = owners[sources[e]]
            if owner != NO_OWNER:
                counts[owner] += 1
        if old != NO_OWNER:
            sizes[old] -= 1
        best = NO_OWNER
        for owner in range(len(sizes)):
            if sizes[owner] >= most:
                continue
            if (
                best == NO_OWNER
                or counts[owner] > counts[best]
                or (
                    counts[owner] == counts[best]
                    and best != old
                    and (owner == old or sizes[owner] < sizes[best])
                )
            ):
                best = owner
        sizes[best] += 1
        if best != old:
            owners[row] = best
            moves += 1
    return moves


@compiled
def count_cut(rows: Array, offsets: Array, sources: Array, owners: Array) -> int:
    """Count the neighbours of all rows that another partition owns."""
    cut = 0
    for r in range(len(rows)):
        row_owner = owners[rows[r]]
        for e in range(offsets[r], offsets[r + 1]):
            cut += owners[sources[e]] != row_owner
    return cut
