"""Read all labels and relations of a graph into a new mirror."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.errors import GraphError
from ringfence.connector.mapping import NodeMapping
from ringfence.connector.mirror.typed import RawBlock, TypedMirror, create_typed
from ringfence.connector.mirror.typed.mirror import CLASSIFIED
from ringfence.connector.neo4j.prefetch import prefetch
from ringfence.connector.neo4j.read.incremental import RelationshipBlock
from ringfence.connector.neo4j.read.sync import SyncResult
from ringfence.connector.neo4j.read.typed.accounts import count_relations, open_accounts
from ringfence.connector.neo4j.read.typed.counts import count_label
from ringfence.connector.neo4j.read.typed.reader import TypedRead, TypedReader
from ringfence.connector.neo4j.read.watermark import horizon


def read_whole(reader: TypedReader, identity: str, why: str) -> TypedRead:
    """Read everything; the watermark is where this read begins."""
    expected = [count_label(reader.graph, node.label) for node in reader.mapping.nodes]
    if expected[CLASSIFIED] == 0:
        raise GraphError(
            found=f"the graph has no :{reader.mapping.classified.label} nodes",
            needed="nodes of the classified label",
            next_step="ringfence init   (lists the labels that exist)",
        )
    end = horizon(reader.graph)
    typed = create_typed(reader.folder, identity, reader.mapping)
    typed.base.watermark_ns = end.watermark_ns
    for label, node in enumerate(reader.mapping.nodes):
        read = prefetch(reader.label(label, end.watermark_ns).read_all())
        for block in read:
            add_nodes(reader, typed, block)
            reader.progress(f"{node.label} nodes", typed.count(label), expected[label])
        _refuse_equal_keys(typed, label, node, expected[label])
    read_all_relations(reader, typed, expected)
    first_seen = find_first_seen(reader, typed, np.arange(typed.size), end.watermark_ns)
    empty = [node.label for node, n in zip(reader.mapping.nodes, expected, strict=True) if not n]
    notes = [end.note, *(f"no node carries the label {label}" for label in empty)]
    rows = typed.rows_of_label(CLASSIFIED)
    result = SyncResult(
        typed.base, rows, typed.base.edge_count, None, why, "; ".join(filter(None, notes))
    )
    return TypedRead(typed, result, first_seen)


def read_all_relations(reader: TypedReader, typed: TypedMirror, nodes: list[int]) -> None:
    """Read all relationships; those that the mirror has and the graph has not are dropped."""
    before = count_relations(reader)
    typed.base.replace_relationships(_all_relations(reader, nodes))
    open_accounts(reader, typed, before)


def _all_relations(reader: TypedReader, nodes: list[int]) -> Iterator[RelationshipBlock]:
    """Each relation is collected at its end with more nodes."""
    done = 0
    for index, relation in enumerate(reader.mapping.relations):
        from_target = nodes[relation.target] > nodes[relation.source]
        for block in prefetch(reader.relation(index).read_all(from_target)):
            yield block
            done += len(block.targets)
            reader.progress("relationships", done, 0)


def add_nodes(reader: TypedReader, typed: TypedMirror, block: RawBlock) -> None:
    """Append a block; a node whose graph has no creation times keeps when it was first seen.

    Context that can't be used is counted, and stays out of the quarantine that SQL records.
    """
    if block.label != CLASSIFIED:
        rejected = typed.context_rejected.get(block.label, 0) + len(block.rejected)
        typed.context_rejected[block.label] = rejected
        block = _without_rejected(block)
    elif not reader.mapping.classified.created_at:
        known = reader.first_seen(block.keys)
        for at, key in enumerate(block.keys) if known else ():
            block.created_ns[at] = known.get(key, block.created_ns[at])
    typed.add_nodes(block)


def find_first_seen(
    reader: TypedReader, typed: TypedMirror, rows: NDArray[np.int64], now_ns: int
) -> dict[str, int]:
    """Return the classified nodes among `rows` that this run sees first, and its time."""
    if reader.mapping.classified.created_at:
        return {}
    mine = rows[(typed.labels[rows] == CLASSIFIED) & (typed.base.created_ns[rows] == now_ns)]
    return dict.fromkeys(typed.base.keys.take(mine.tolist()), now_ns)


def _without_rejected(block: RawBlock) -> RawBlock:
    return RawBlock(block.label, block.keys, block.columns, block.classes, block.created_ns)


def _refuse_equal_keys(typed: TypedMirror, label: int, node: NodeMapping, expected: int) -> None:
    rejected = (
        len(typed.base.rejected) if label == CLASSIFIED else typed.context_rejected.get(label, 0)
    )
    if typed.count(label) + rejected < expected:
        raise GraphError(
            found=f"{expected} :{node.label} nodes have only {typed.count(label)} different keys",
            needed=f"a unique {node.key}",
            next_step="ringfence migrate   (creates the constraint, or names the duplicates)",
        )
