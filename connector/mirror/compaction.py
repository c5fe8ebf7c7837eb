"""A mirror without its gaps: the same nodes in the same order, in new files under a new epoch.

Deleted nodes leave rows behind, and changed properties stand beside the columns. Where both have
become many, all is written anew. Rows keep their order, so every list of neighbours does, and every
sum over it has the bits that it had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.adjacency import NODES_PER_MERGE_STEP, Adjacency
from ringfence.connector.mirror.columns import Column, written
from ringfence.connector.mirror.format import unpack_codes, unpack_ends
from ringfence.connector.mirror.key_index import Keys
from ringfence.connector.mirror.mirror import Mirror, create

Ints = NDArray[np.int64]

MIN_ROWS_TO_COMPACT = 10_000
MAX_DEAD_SHARE = 8  # one row in so many may be a gap or have a patch


def is_compaction_due(mirror: Mirror) -> bool:
    """Whether gaps and patches have become so many that writing all anew pays."""
    dead = mirror.size - mirror.node_count + len(mirror.patches)
    return dead > max(MIN_ROWS_TO_COMPACT, mirror.size // MAX_DEAD_SHARE)


def compact(mirror: Mirror, folder: Path) -> Mirror:
    """Return the same nodes and relationships without gaps; the old files stay until a save.

    What was kept for the old epoch, such as tables of the forward pass, is no more of use.
    """
    fresh = create(folder, mirror.identity, mirror.width)
    rows = np.flatnonzero(mirror.present)
    for start, stop in _steps(len(rows)):
        part = rows[start:stop]
        fresh.class_column.append(mirror.classes[part])
        fresh.created_column.append(mirror.created_ns[part])
        fresh.feature_column.append(mirror.features[part])
    passed = int(np.searchsorted(rows, mirror.checked))
    read = mirror.sources_read[rows[rows < len(mirror.sources_read)]]
    return replace(
        mirror, folder=fresh.folder, epoch=fresh.epoch, claim=fresh.claim, patches=fresh.patches,
        class_column=fresh.class_column, created_column=fresh.created_column,
        feature_column=fresh.feature_column, keys=_compact_keys(mirror.keys, rows, fresh.folder),
        adjacency=_compact_adjacency(mirror, rows, fresh.folder), sources_read=read,
        evaluated=mirror.evaluated[rows], checked=passed % max(len(rows), 1),
    )  # fmt: skip


def _compact_keys(keys: Keys, rows: Ints, folder: Path) -> Keys:
    ends, text = keys.ends.array, Column(folder / "keys.text", np.uint8)
    sizes = np.diff(ends, prepend=0)
    for start, stop in _steps(len(ends)):
        low = int(ends[start - 1]) if start else 0
        here = np.repeat(~keys.gone[start:stop], sizes[start:stop])
        text.append(keys.text.array[low : int(ends[stop - 1])][here])
    new_ends = written(folder / "keys.ends", np.cumsum(sizes[rows]))
    empty = Keys.empty(folder)
    compacted = Keys(text, new_ends, empty.hashes, empty.rows)
    compacted.sort_in()
    return compacted


def _compact_adjacency(mirror: Mirror, rows: Ints, folder: Path) -> Adjacency:
    mirror.adjacency.settle(mirror.version)
    place = np.full(mirror.size, -1, np.int64)
    place[rows] = np.arange(len(rows))
    fresh = Adjacency.empty(folder)
    counts = np.zeros(len(rows) + 1, np.int64)
    for start, stop in _steps(mirror.size):
        entries = mirror.adjacency.entries(start, stop)
        node, other = unpack_ends(entries)
        fresh.others.append(place[other].astype(np.int32))
        fresh.codes.append(unpack_codes(entries))
        counts[1:] += np.bincount(place[node], minlength=len(rows))
    fresh.offsets.append(np.cumsum(counts))
    fresh.stamps.append(mirror.adjacency.changed[rows])
    fresh.recall()
    return fresh


def _steps(rows: int) -> Iterator[tuple[int, int]]:
    for start in range(0, rows, NODES_PER_MERGE_STEP):
        yield start, min(start + NODES_PER_MERGE_STEP, rows)
