"""What is new in a graph of several labels joins the mirror: nodes, relationships, context.

New nodes of the classified label are found by creation time, or as keys that the mirror lacks.
Context that a new relationship names is read by its key; labels with few nodes are read again in
every run, for a stale hub is heard by everybody.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.typed import TypedMirror
from ringfence.connector.mirror.typed.mirror import CLASSIFIED, plain_key
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.columns import typed_keys
from ringfence.connector.neo4j.read.incremental import RelationshipBlock
from ringfence.connector.neo4j.read.sync import SyncResult
from ringfence.connector.neo4j.read.typed.accounts import settled_until
from ringfence.connector.neo4j.read.typed.counts import count_label
from ringfence.connector.neo4j.read.typed.reader import TypedRead, TypedReader
from ringfence.connector.neo4j.read.typed.repair import (
    KEYS_PER_RECORD,
    keys_of,
    remove_deleted_of_label,
    remove_gone,
    replace_reused_keys,
)
from ringfence.connector.neo4j.read.typed.whole import add_nodes, find_first_seen
from ringfence.connector.neo4j.read.watermark import horizon

MAX_NODES_READ_AGAIN = 10_000  # a context label with more is read by the keys that are named
Ints = NDArray[np.int64]


def append_new(reader: TypedReader, typed: TypedMirror, *, compare: bool = False) -> TypedRead:
    """Nodes first, then relationships, then context that these name, and so on."""
    end = horizon(reader.graph)
    from_ns = typed.base.watermark_ns or 0
    since = settled_until(reader, typed)
    typed.base.advance()
    first, edges = typed.size, typed.base.edge_count
    said = [end.note, *_add_classified(reader, typed, since, end.watermark_ns, compare)]
    said += _read_context_again(reader, typed, end.watermark_ns)
    _add_relations(reader, typed, first, since, end.watermark_ns)
    typed.base.watermark_ns = max(end.watermark_ns, from_ns)
    rows = np.arange(first, typed.size)
    first_seen = find_first_seen(reader, typed, rows, end.watermark_ns)
    notes = "; ".join(filter(None, said))
    mine = rows[(typed.labels[rows] == CLASSIFIED) & typed.base.present[rows]]
    result = SyncResult(typed.base, mine, typed.base.edge_count - edges, from_ns, "", notes)
    return TypedRead(typed, result, first_seen)


def _add_classified(
    reader: TypedReader, typed: TypedMirror, since_ns: int, now_ns: int, compare: bool
) -> list[str]:
    """Add the new nodes of the classified label, take deleted ones out; say how."""
    label, waiting = reader.label(CLASSIFIED, now_ns), list(typed.base.rejected)
    typed.base.rejected.clear()  # those that are still unusable come back with their reason
    if not reader.mapping.classified.created_at or compare:
        found = _compare_keys(reader, typed)
        blocks = label.read_ids(found.unknown)
        rate = f"{found.scanned / max(found.seconds, 1e-3):,.0f} per second"
        said = [f"new nodes are keys not yet known: {found.scanned:,} keys scanned, {rate}"]
        if found.deleted:
            said.append(f"{found.deleted} nodes were deleted")
    else:
        for block in label.read_ids(waiting):
            add_nodes(reader, typed, block)
        there = count_label(reader.graph, reader.mapping.classified.label)
        blocks, said = label.read_since(since_ns, there - typed.count(CLASSIFIED)), []
    for block in prefetch(blocks):
        add_nodes(reader, typed, block)
        reader.progress("nodes", typed.size, 0)
    if typed.base.other_times and reader.mapping.classified.created_at:
        replace_reused_keys(reader, typed)
    return said


@dataclass(frozen=True, slots=True)
class _KeyScan:
    """Ids that the mirror lacks, how many nodes it had too many, keys scanned, seconds."""

    unknown: list[str]
    deleted: int
    scanned: int
    seconds: float


def _compare_keys(reader: TypedReader, typed: TypedMirror) -> _KeyScan:
    """Scan all keys of the classified label; what is deleted leaves the mirror."""
    started = time.perf_counter()
    seen = (typed.labels != CLASSIFIED) | ~typed.base.present
    unknown: list[str] = []
    scanned = 0
    for ids, keys in prefetch(reader.label(CLASSIFIED).read_keys(KEYS_PER_RECORD)):
        rows = typed.base.rows_of(typed_keys(keys))
        seen[rows[rows >= 0]] = True
        unknown += [ids[at] for at in np.flatnonzero(rows < 0).tolist()]
        scanned += len(ids)
        reader.progress("keys", scanned, 0)
    deleted = remove_gone(reader, typed, np.flatnonzero(~seen))
    return _KeyScan(unknown, deleted, scanned, time.perf_counter() - started)


def _read_context_again(reader: TypedReader, typed: TypedMirror, now_ns: int) -> list[str]:
    """Read small context labels whole; of a large one that shrank, compare the keys."""
    said = []
    for label, node in enumerate(reader.mapping.nodes):
        if label == CLASSIFIED:
            continue
        count = count_label(reader.graph, node.label)
        if not count:
            said.append(f"no node carries the label {node.label}")
        if count >= MAX_NODES_READ_AGAIN:
            if count < typed.count(label):
                deleted = remove_deleted_of_label(reader, typed, label)
                said.append(f"{deleted} nodes of the context label {node.label} were deleted")
            continue
        seen = (typed.labels != label) | ~typed.base.present
        typed.context_rejected[label] = 0
        for block in reader.label(label, now_ns).read_all():
            rows = typed.base.find(block.keys)
            seen[rows[(rows >= 0) & (rows < len(seen))]] = True
            typed.update_nodes(block)
            add_nodes(reader, typed, block)
        if not seen.all() and (deleted := remove_gone(reader, typed, np.flatnonzero(~seen))):
            said.append(f"{deleted} nodes of the context label {node.label} were deleted")
    return said


def _add_relations(
    reader: TypedReader, typed: TypedMirror, first: int, since_ns: int, now_ns: int
) -> None:
    """Add what is new by time, and all that touches new rows; context it names joins as it goes."""
    pairs = SeenPairs()
    blocks = [
        block
        for index, relation in enumerate(reader.mapping.relations)
        if relation.created_at
        for block in reader.relation(index).read_since(since_ns)
    ]
    while True:
        for index in range(len(reader.mapping.relations)):
            blocks += _relations_of(reader, typed, index, first)
        first = typed.size
        _add_named_context(reader, typed, blocks, now_ns)
        for block in blocks:
            typed.base.add_block(pairs.leave_out_seen(block))
        blocks = []
        if typed.size == first:
            break
    typed.base.add_relationships([])


def _relations_of(
    reader: TypedReader, typed: TypedMirror, index: int, first: int
) -> list[RelationshipBlock]:
    """All of one relation at the rows from `first` on, at either end."""
    relation, found = reader.mapping.relations[index], []
    rows = np.arange(first, typed.size)
    for label, from_target in ((relation.source, False), (relation.target, True)):
        mine = rows[(typed.labels[rows] == label) & typed.base.present[rows]]
        keys = keys_of(typed, mine)
        found += list(reader.relation(index).read_of(keys, from_target))
    return found


def _add_named_context(
    reader: TypedReader, typed: TypedMirror, blocks: list[RelationshipBlock], now_ns: int
) -> None:
    """Read the context nodes that relationships name and the mirror lacks, by their keys."""
    named: dict[int, set[str]] = {}
    for block in blocks:
        relation = reader.mapping.relations[block.type_index]
        for label, keys in ((relation.source, block.sources), (relation.target, block.targets)):
            if label != CLASSIFIED:
                named.setdefault(label, set()).update(key for key in keys if key is not None)
    for label, found in named.items():
        keys = sorted(found)
        absent = np.flatnonzero(typed.base.find(keys) < 0)
        wanted = [plain_key(keys[at]) for at in absent.tolist()]
        for nodes in reader.label(label, now_ns).read_by_key(wanted):
            add_nodes(reader, typed, nodes)


class SeenPairs:
    """Which pairs of ends this read has brought: a relationship is counted at one of its ends."""

    def __init__(self) -> None:
        self._seen: dict[int, set[tuple[str | None, str | None]]] = {}

    def leave_out_seen(self, block: RelationshipBlock) -> RelationshipBlock:
        """Return a block without pairs that an earlier block had; parallel ones inside it stay."""
        seen = self._seen.setdefault(block.type_index, set())
        ends = list(zip(block.sources, block.targets, strict=True))
        fresh = [pair for pair in ends if pair not in seen]
        seen.update(fresh)
        return RelationshipBlock(
            block.type_index, [one for one, _ in fresh], [two for _, two in fresh]
        )
