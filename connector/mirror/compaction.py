"""A mirror without its gaps: the same nodes in the same order, in new files under a new epoch.

Deleted nodes leave rows behind, and changed properties are stored outside the columns. Once there
are many of either, everything is rewritten. Rows keep their order, so every list of neighbours
does, and every sum over it has the bits that it had.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.connector.mirror.columns import Column, written
from ringfence.connector.mirror.format import unpack_codes, unpack_ends
from ringfence.connector.mirror.key_index import Keys
from ringfence.connector.mirror.mirror import Mirror
from ringfence.connector.mirror.new_mirror import create
from ringfence.connector.mirror.related.tables import Related
from ringfence.connector.mirror.table import Table, steps

Ints = NDArray[np.int64]

MIN_ROWS_TO_COMPACT = 10_000
MAX_DEAD_SHARE = 8  # one row in so many may be a gap or have a patch


def is_compaction_due(mirror: Mirror) -> bool:
    """Whether gaps, patches and records that no node has have become so many that it pays."""
    records = sum(map(len, mirror.tables)) - mirror.size
    dead = mirror.size - mirror.node_count + len(mirror.patches) + records
    dead += sum(table.dead for table in mirror.related.values())
    return dead > max(MIN_ROWS_TO_COMPACT, mirror.size // MAX_DEAD_SHARE)


def compact(mirror: Mirror, folder: Path) -> Mirror:
    """Return the same nodes and relationships without gaps; the old files stay until a save.

    What was kept for the old epoch, such as tables of the forward pass, becomes useless.
    """
    fresh = create(folder, mirror.identity, mirror.width)
    rows = np.flatnonzero(mirror.present)
    for start, stop in steps(len(rows)):
        part = rows[start:stop]
        fresh.class_column.append(mirror.classes[part])
        fresh.created_column.append(mirror.created_ns[part])
        fresh.label_column.append(mirror.labels[part])
    tables, places = _compact_tables(mirror, rows, fresh.folder)
    passed = int(np.searchsorted(rows, mirror.checked))
    read = mirror.first_read.steps
    read = read[rows[rows < len(read)]]
    return replace(
        mirror, folder=fresh.folder, epoch=fresh.epoch, claim=fresh.claim, patches=fresh.patches,
        class_column=fresh.class_column, created_column=fresh.created_column,
        label_column=fresh.label_column, tables=tables, places=places,
        revised=mirror.revised[rows] if len(mirror.revised) else mirror.revised,
        keys=_compact_keys(mirror.keys, rows, fresh.folder),
        adjacency=_compact_adjacency(mirror, rows, fresh.folder),
        first_read=replace(mirror.first_read, steps=read),
        evaluated=mirror.evaluated[rows], checked=passed % max(len(rows), 1),
        incarnations=_compact_incarnations(mirror, rows),
        related=_compact_related(mirror, rows, fresh.folder),
    )  # fmt: skip


def _compact_related(mirror: Mirror, rows: Ints, folder: Path) -> Related:
    """The relationships with columns by their ends' new rows, without those that are gone."""
    place = np.full(mirror.size, -1, np.int64)
    place[rows] = np.arange(len(rows))
    return Related(
        (relation, table.rewrite(folder, relation, place))
        for relation, table in mirror.related.items()
    )


def _compact_incarnations(mirror: Mirror, rows: Ints) -> dict[int, int]:
    """Numbers of nodes by their new rows; a deleted node's goes with it."""
    places = dict(zip(rows.tolist(), range(len(rows)), strict=True)) if mirror.incarnations else {}
    return {places[row]: n for row, n in mirror.incarnations.items() if row in places}


def _compact_tables(mirror: Mirror, rows: Ints, folder: Path) -> tuple[tuple[Table, ...], Ints]:
    """The tables without records that none of the rows has, and the places of what is left."""
    labels, tables = mirror.labels[rows], []
    places = np.empty(len(rows) if len(mirror.places) else 0, np.int64)
    for label, table in enumerate(mirror.tables):
        mine = labels == label
        fresh, at = table.rewrite(folder, label, mirror.places_of(rows[mine]))
        tables.append(fresh)
        if len(at):
            places[mine] = at
    return tuple(tables), places


def _compact_keys(keys: Keys, rows: Ints, folder: Path) -> Keys:
    ends, text = keys.ends.array, Column(folder / "keys.text", np.uint8)
    sizes = np.diff(ends, prepend=0)
    for start, stop in steps(len(ends)):
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
    for start, stop in steps(mirror.size):
        entries = mirror.adjacency.entries(start, stop)
        node, other = unpack_ends(entries)
        fresh.others.append(place[other].astype(np.int32))
        fresh.codes.append(unpack_codes(entries))
        counts[1:] += np.bincount(place[node], minlength=len(rows))
    fresh.offsets.append(np.cumsum(counts))
    fresh.stamps.append(mirror.adjacency.changed[rows])
    fresh.recall()
    return fresh
