"""What is new in the graph joins the mirror: nodes, relationships, and the context that these name.

New nodes of the classified label are found by creation time, or as keys that the mirror lacks.
Context that a new relationship names is read by its key; labels with few nodes are read again in
every run, because all their neighbours aggregate a hub whose properties are stale.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror import (
    CLASSIFIED,
    Mirror,
    RawBlock,
    RelationshipBlock,
    plain_key,
)
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.comparison import compare_keys, keys_of
from ringfence.connector.neo4j.read.counts import Counts, count_graph
from ringfence.connector.neo4j.read.reader import GraphReader, SyncResult
from ringfence.connector.neo4j.read.repair import remove_gone, replace_reused_keys
from ringfence.connector.neo4j.read.watermark import horizon

MAX_NODES_READ_AGAIN = 10_000  # a context label with more is read by the keys that are named
Rows = NDArray[np.int64]


def append_new(reader: GraphReader, mirror: Mirror) -> SyncResult:
    """Read nodes first: a relationship whose node is committed in between waits in the mirror."""
    end = horizon(reader.graph, reader.unseen_seconds)
    from_ns, since = mirror.watermark_ns or 0, reader.next_since_ns(mirror)
    mirror.advance()
    first, edges = mirror.size, mirror.edge_count
    counts = count_graph(reader.graph, reader.mapping)
    notes = [end.note]
    _reread_quarantined(reader, mirror, end.watermark_ns)
    by_time = range(mirror.size, mirror.size)
    if reader.mapping.classified.created_at:
        by_time = _add_newer(reader, mirror, since, counts)
    else:
        notes += _add_unknown_keys(reader, mirror, end.watermark_ns, counts)
    notes += _reread_context(reader, mirror, end.watermark_ns, counts)
    _add_newer_relationships(reader, mirror, since)
    add_relationships_at(reader, mirror, first, by_time)
    mirror.watermark_ns = max(end.watermark_ns, from_ns)
    rows = np.arange(first, mirror.size)
    rows = rows[(mirror.labels[rows] == CLASSIFIED) & mirror.present[rows]]
    first_seen = find_first_seen(reader, mirror, rows, end.watermark_ns)
    note, added = "; ".join(filter(None, notes)), mirror.edge_count - edges
    return SyncResult(mirror, rows, added, from_ns, "", note, first_seen)


def find_first_seen(reader: GraphReader, mirror: Mirror, rows: Rows, now_ns: int) -> dict[str, int]:
    """Return the classified nodes among `rows` that this run sees first, and its time."""
    if reader.mapping.classified.created_at:
        return {}
    mine = rows[(mirror.labels[rows] == CLASSIFIED) & (mirror.created_ns[rows] == now_ns)]
    return dict.fromkeys(mirror.keys.take(mine.tolist()), now_ns)


def _reread_quarantined(reader: GraphReader, mirror: Mirror, now_ns: int) -> None:
    """Read quarantined nodes again; those that are still unusable come back with their reason."""
    waiting = list(mirror.rejected)
    mirror.rejected.clear()
    for block in reader.label(mirror, CLASSIFIED, now_ns).read_ids(waiting):
        reader.add_block(mirror, block)


def _add_newer(reader: GraphReader, mirror: Mirror, since_ns: int, counts: Counts) -> range:
    """Add classified nodes by their creation times; return the rows that came by their times."""
    first, done = mirror.size, 0
    expected = counts.classified - mirror.count(CLASSIFIED)
    for block in prefetch(reader.label(mirror, CLASSIFIED).read_since(since_ns, expected)):
        reader.add_block(mirror, block)
        done += len(block.keys) + len(block.rejected)
        reader.progress("nodes", done, 0)
    by_time = range(first, mirror.size)
    if mirror.other_times:
        replace_reused_keys(reader, mirror)
    return by_time


def _add_unknown_keys(
    reader: GraphReader, mirror: Mirror, now_ns: int, counts: Counts
) -> list[str]:
    """Add classified nodes whose keys the mirror lacks, remove deleted ones; say how."""
    compared = compare_keys(reader, mirror, CLASSIFIED, counts.classified)
    rate = f"{compared.scanned / max(compared.seconds, 1e-3):,.0f} per second"
    notes = [f"new nodes are keys not yet known: {compared.scanned:,} keys scanned, {rate}"]
    if deleted := remove_gone(reader, mirror, compared.gone):
        notes.append(f"{deleted} nodes were deleted")
    label = reader.label(mirror, CLASSIFIED, now_ns)
    for done, block in enumerate(prefetch(label.read_ids(compared.missing)), start=1):
        reader.add_block(mirror, block)
        reader.progress("nodes", min(done * reader.rows, len(compared.missing)), 0)
    return notes


def _reread_context(reader: GraphReader, mirror: Mirror, now_ns: int, counts: Counts) -> list[str]:
    """Read small context labels whole; of a large one that shrank, compare the keys."""
    notes = []
    for label, node in enumerate(reader.mapping.nodes):
        if label == CLASSIFIED:
            continue
        deleted, count = 0, counts.nodes[label]
        if count < MAX_NODES_READ_AGAIN:
            deleted = _reread_label(reader, mirror, label, now_ns)
        elif count < mirror.count(label):
            deleted = remove_gone(reader, mirror, compare_keys(reader, mirror, label, count).gone)
        if not count:
            notes.append(f"no node carries the label {node.label}")
        if deleted:
            notes.append(f"{deleted} nodes of the context label {node.label} were deleted")
    return notes


def _reread_label(reader: GraphReader, mirror: Mirror, label: int, now_ns: int) -> int:
    """Read all nodes of a label again; return how many were deleted."""
    seen = (mirror.labels != label) | ~mirror.present
    mirror.context_rejected[label] = 0
    for block in reader.label(mirror, label, now_ns).read_all(MAX_NODES_READ_AGAIN):
        rows = mirror.find(block.keys)
        seen[rows[(rows >= 0) & (rows < len(seen))]] = True
        if isinstance(block, RawBlock):
            mirror.update_nodes(block)
        reader.add_block(mirror, block)
    return 0 if seen.all() else remove_gone(reader, mirror, np.flatnonzero(~seen))


def _add_newer_relationships(reader: GraphReader, mirror: Mirror, since_ns: int) -> None:
    """Add relationships by their creation times."""
    done = 0
    for index in reader.timed_relations():
        for block in prefetch(reader.relation(index).read_since(since_ns)):
            add_named_context(reader, mirror, block)
            mirror.add_block(block)
            done += len(block.targets)
            reader.progress("relationships", done, 0)


def add_relationships_at(
    reader: GraphReader, mirror: Mirror, first: int, by_time: range = range(0)
) -> None:
    """Add the relationships at all rows from `first` on; context that they name joins as it goes.

    Those with creation times came by them where the node did: at rows `by_time` only the others
    are read.
    """
    start = first
    while start < (stop := mirror.size):
        rows = np.arange(start, stop)
        rows = rows[mirror.present[rows]]
        otherwise = rows[(rows < by_time.start) | (rows >= by_time.stop)]
        for index, relation in enumerate(reader.mapping.relations):
            add = mirror.take_block if relation.created_at else mirror.add_block
            asked = otherwise if relation.created_at else rows
            for block in _relationships_at(reader, mirror, index, asked, range(first, start)):
                add_named_context(reader, mirror, block)
                add(block)
        start = stop
    mirror.add_relationships([])


def _relationships_at(
    reader: GraphReader, mirror: Mirror, index: int, rows: Rows, before: range
) -> Iterator[RelationshipBlock]:
    """Yield each relationship of one relation at some rows once.

    What touches a row of `before`, or starts at one of the rows, came with it.
    """
    relation = reader.mapping.relations[index]
    for block in prefetch(reader.relation(index).read_of(keys_of(mirror, rows, relation.source))):
        yield _leave_out(block, mirror.rows_of(block.targets), before)
    if len(rows):
        before = range(before.start, int(rows[-1]) + 1)
    keys = keys_of(mirror, rows, relation.target)
    for block in prefetch(reader.relation(index).read_of(keys, from_target=True)):
        yield _leave_out(block, mirror.rows_of(block.sources), before)


def _leave_out(block: RelationshipBlock, others: Rows, rows: range) -> RelationshipBlock:
    known = (others >= rows.start) & (others < rows.stop)
    return block.leave_out(known) if known.any() else block


def add_named_context(reader: GraphReader, mirror: Mirror, block: RelationshipBlock) -> None:
    """Read the context nodes that relationships name and the mirror lacks, by their keys."""
    relation = reader.mapping.relations[block.type_index]
    for label, keys in ((relation.source, block.sources), (relation.target, block.targets)):
        if label == CLASSIFIED:
            continue
        named = sorted({str(key) for key in keys if key is not None})
        absent = np.flatnonzero(mirror.find(named) < 0)
        wanted = [plain_key(named[place]) for place in absent.tolist()]
        for nodes in reader.label(mirror, label, mirror.watermark_ns or 0).read_by_key(wanted):
            reader.add_block(mirror, nodes)
