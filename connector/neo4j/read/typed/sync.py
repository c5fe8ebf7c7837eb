"""Bring the mirror of several labels up to date: what is new, or all where that isn't enough.

New nodes of the classified label are found by creation time, or as keys that the mirror lacks.
Context that a new relationship names is read by its key; labels with few nodes are read again in
every run, for a stale hub is heard by everybody.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mirror.typed import TypedMirror, load_typed
from ringfence.connector.mirror.typed.mirror import CLASSIFIED, plain_key
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.columns import typed_keys
from ringfence.connector.neo4j.read.incremental import RelationshipBlock
from ringfence.connector.neo4j.read.slices import choose_slice
from ringfence.connector.neo4j.read.sync import SyncResult
from ringfence.connector.neo4j.read.typed.accounts import (
    count_relations,
    settle_accounts,
    settled_until,
)
from ringfence.connector.neo4j.read.typed.counts import count_label
from ringfence.connector.neo4j.read.typed.reader import TypedRead, TypedReader
from ringfence.connector.neo4j.read.typed.slices import (
    RowDifference,
    compare_relations,
    update_rows,
)
from ringfence.connector.neo4j.read.typed.whole import (
    add_nodes,
    find_first_seen,
    read_all_relations,
    read_whole,
)
from ringfence.connector.neo4j.read.watermark import horizon

MAX_NODES_READ_AGAIN = 10_000  # a context label with more is read by the keys that are named
KEYS_PER_RECORD = 50_000
Ints = NDArray[np.int64]


class NotEnough(Exception):
    """What is new isn't enough: the graph is read whole, for the reason in words."""


def typed_identity(reader: TypedReader) -> str:
    """Return what a mirror must belong to: this database, these labels, keys and relations."""
    database = reader.graph.read("CALL db.info() YIELD id RETURN id")[0]["id"]
    nodes = [(node.label, node.key, node.column_names, node.created_at)
             for node in reader.mapping.nodes]  # fmt: skip
    relations = [
        (one.source, one.type, one.target, one.created_at) for one in reader.mapping.relations
    ]
    names = (nodes, relations, reader.mapping.class_property, reader.mapping.time_kind)
    return hashlib.sha256(f"{database}\ntyped\n{names!r}".encode()).hexdigest()[:32]


def sync_typed(reader: TypedReader, *, whole: bool = False) -> TypedRead:
    """Read what is new; read everything where asked to, or where the counts show a difference."""
    identity = typed_identity(reader)
    known = None if whole else load_typed(reader.folder, identity, reader.mapping)
    if known is None:
        return read_whole(reader, identity, "asked for" if whole else "first read")
    try:
        rows, following = choose_slice(known.base, reader.check_nodes)
        read = _check_rows(reader, known, _catch_up(reader, known), rows)
        known.base.checked = following
        return read
    except NotEnough as why:
        return read_whole(reader, identity, str(why))


def _catch_up(reader: TypedReader, typed: TypedMirror) -> TypedRead:
    """Append what is new and account for it, with a second look where the counts differ."""
    before = count_relations(reader)
    read = _append(reader, typed)
    wrong = settle_accounts(reader, typed, before)
    if wrong or _nodes_are_missing(reader, typed):
        before = count_relations(reader)
        again = _append(reader, typed, compare=True)
        read = _both(read, again)
        wrong &= settle_accounts(reader, typed, before)
    if wrong:
        _read_relations_again(reader, typed)
        names = [reader.mapping.describe(reader.mapping.relations[at]) for at in sorted(wrong)]
        note = f"the counts differed; read all relationships again ({', '.join(names)})"
        read = _noted(read, note)
    return read


def _check_rows(reader: TypedReader, typed: TypedMirror, read: TypedRead, rows: Ints) -> TypedRead:
    """Compare some rows with the graph; properties are taken as they are now."""
    if not len(rows):
        return read
    found = _look_at(reader, typed, rows)
    if found.difference:
        read = _both(read, _append(reader, typed))  # what was on its way has come
        found = replace(
            found, difference=found.difference & _look_at(reader, typed, rows).difference
        )
    if found.difference.gone:
        raise NotEnough("nodes were deleted")
    said = [f"{found.changed} nodes had changed"] if found.changed else []
    if found.difference.ends:
        _read_relations_again(reader, typed)
        said.append(f"{len(found.difference.ends)} relationships differed, all were read again")
    if said:
        read = _noted(read, f"compared {len(rows)} nodes with the graph: {'; '.join(said)}")
    return read


@dataclass(frozen=True, slots=True)
class _Look:
    changed: int
    difference: RowDifference


def _look_at(reader: TypedReader, typed: TypedMirror, rows: Ints) -> _Look:
    changed, gone = update_rows(reader, typed, rows)
    ends = compare_relations(reader, typed, rows)
    return _Look(len(changed), RowDifference(frozenset(gone.tolist()), ends))


def _read_relations_again(reader: TypedReader, typed: TypedMirror) -> None:
    nodes = [typed.count(label) for label in range(len(reader.mapping.nodes))]
    typed.base.forget_relationships()
    read_all_relations(reader, typed, nodes)


def _append(reader: TypedReader, typed: TypedMirror, *, compare: bool = False) -> TypedRead:
    """Nodes first, then relationships, then context that these name, and so on."""
    end = horizon(reader.graph)
    from_ns = typed.base.watermark_ns or 0
    since = settled_until(reader, typed)
    typed.base.advance()
    first, edges = typed.size, typed.base.edge_count
    note = _add_classified(reader, typed, since, end.watermark_ns, compare)
    _read_context_again(reader, typed, end.watermark_ns)
    _add_relations(reader, typed, first, since, end.watermark_ns)
    typed.base.watermark_ns = max(end.watermark_ns, from_ns)
    rows = np.arange(first, typed.size)
    first_seen = find_first_seen(reader, typed, rows, end.watermark_ns)
    notes = "; ".join(filter(None, (end.note, note)))
    mine = rows[typed.labels[rows] == CLASSIFIED]
    result = SyncResult(typed.base, mine, typed.base.edge_count - edges, from_ns, "", notes)
    return TypedRead(typed, result, first_seen)


def _add_classified(
    reader: TypedReader, typed: TypedMirror, since_ns: int, now_ns: int, compare: bool
) -> str:
    """Add the new nodes of the classified label; say how they were found."""
    label, waiting = reader.label(CLASSIFIED, now_ns), list(typed.base.rejected)
    typed.base.rejected.clear()  # those that are still unusable come back with their reason
    if not reader.mapping.classified.created_at or compare:
        ids, scanned, seconds = _unknown_ids(reader, typed)
        blocks = label.read_ids(ids)
        rate = f"{scanned / max(seconds, 1e-3):,.0f} per second"
        note = f"new nodes are keys not yet known: {scanned:,} keys scanned, {rate}"
    else:
        for block in label.read_ids(waiting):
            add_nodes(reader, typed, block)
        blocks, note = label.read_since(since_ns), ""
    for block in prefetch(blocks):
        add_nodes(reader, typed, block)
        reader.progress("nodes", typed.size, 0)
    return note


def _unknown_ids(reader: TypedReader, typed: TypedMirror) -> tuple[list[str], int, float]:
    """Scan all keys of the classified label: ids that the mirror lacks, how many, seconds."""
    started = time.perf_counter()
    seen = np.zeros(typed.size, np.bool_)
    unknown: list[str] = []
    scanned = 0
    for ids, keys in prefetch(reader.label(CLASSIFIED).read_keys(KEYS_PER_RECORD)):
        rows = typed.base.rows_of(typed_keys(keys))
        seen[rows[rows >= 0]] = True
        unknown += [ids[at] for at in np.flatnonzero(rows < 0).tolist()]
        scanned += len(ids)
        reader.progress("keys", scanned, 0)
    if not seen[typed.labels == CLASSIFIED].all():
        raise NotEnough("nodes were deleted")
    return unknown, scanned, time.perf_counter() - started


def _read_context_again(reader: TypedReader, typed: TypedMirror, now_ns: int) -> None:
    """Read small context labels whole; of a large one, see that it did not shrink."""
    for label, node in enumerate(reader.mapping.nodes):
        if label == CLASSIFIED:
            continue
        count = count_label(reader.graph, node.label)
        if count >= MAX_NODES_READ_AGAIN:
            if count < typed.count(label):
                raise NotEnough(f"nodes of the context label {node.label} were deleted")
            continue
        seen = np.zeros(typed.size, np.bool_)
        typed.context_rejected[label] = 0
        for block in reader.label(label, now_ns).read_all():
            rows = typed.base.find(block.keys)
            seen[rows[rows >= 0]] = True
            typed.update_nodes(block)
            add_nodes(reader, typed, block)
        if not seen[typed.labels[: len(seen)] == label].all():
            raise NotEnough(f"nodes of the context label {node.label} were deleted")


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
        mine = rows[typed.labels[rows] == label]
        keys = [plain_key(key) for key in typed.base.keys.take(mine.tolist())]
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


def _nodes_are_missing(reader: TypedReader, typed: TypedMirror) -> bool:
    """Whether the graph counts other nodes of the classified label than the mirror accounts for."""
    held = typed.count(CLASSIFIED) + len(typed.base.rejected)
    return count_label(reader.graph, reader.mapping.classified.label) != held


def _both(first: TypedRead, second: TypedRead) -> TypedRead:
    """Two reads of one mirror as one."""
    rows = np.concatenate([first.read.new_rows, second.read.new_rows])
    edges = first.read.new_edges + second.read.new_edges
    read = replace(second.read, new_rows=rows, new_edges=edges, from_ns=first.read.from_ns)
    return replace(second, read=read, first_seen={**first.first_seen, **second.first_seen})


def _noted(read: TypedRead, note: str) -> TypedRead:
    notes = "; ".join(filter(None, (read.read.note, note)))
    return replace(read, read=replace(read.read, note=notes))
